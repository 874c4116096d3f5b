"""recurrence equals a loop of single steps, forward and backward."""

import numpy as np

import reference as ref
from registry import real_of
from tolerance import close, sequence, sequence_gradient


def problem(subject, rng, steps=7, batch=3, d=2):
    n = subject.reference().shape[-1]
    draw = lambda *shape: ref.normal(rng, *shape, dtype=subject.dtype) / 2
    x, v = draw(steps, batch, d), draw(n, d)
    bias = 0.1 * ref.normal(rng, n, dtype=real_of(subject.dtype))
    return x, v, {"h0": draw(batch, n), "activation": "modrelu", "activation_bias": bias}


def loop(subject, rng, **sizes):
    """The product with W of every step through the operator's own apply, everything else by the reference."""
    x, v, keywords = problem(subject, rng, **sizes)
    h, states = keywords["h0"], []
    for drive in np.einsum("nd,tbd->tbn", ref.wide(v), ref.wide(x)):
        h = ref.activate(subject.apply(h.astype(subject.dtype)) + drive, "modrelu", keywords["activation_bias"])
        states.append(h)
    tolerance = sequence(subject.dtype, subject.factors, len(x))
    close(subject.recurrence(x, v, **keywords), np.stack(states), tolerance, "states")


def bptt(subject, rng, **sizes):
    """Back-propagation through time by the reference, W_bar pulled back to the parameters by the reference."""
    x, v, keywords = problem(subject, rng, **sizes)
    ct = ref.normal(rng, len(x), x.shape[1], len(v), dtype=subject.dtype)
    found = subject.recurrence_vjp(x, v, ct, **keywords)
    expected = ref.recurrence_vjp(subject.reference(), x, v, ct, **keywords)
    expected["transition"] = subject.reference_matrix_vjp(expected["w"])
    tolerance = sequence_gradient(subject.dtype, subject.factors, len(x))
    for name in ("x", "input_weight", "h0", "activation_bias"):
        close(found[name], expected[name], tolerance, f"gradient of {name}", subject.floor(ct))
    assert set(found["transition"]) == set(expected["transition"])
    for name, g in found["transition"].items():
        close(g, expected["transition"][name], tolerance, f"gradient of {name}", subject.floor(ct))


def test_recurrence_equals_a_loop(make, seed):
    for n in (3, 8, 20):
        loop(make(n), seed)
    loop(make(33), seed, steps=3, batch=9, d=5)


def test_recurrence_vjp(make, seed):
    for n in (3, 8, 20):
        bptt(make(n), seed)
    bptt(make(33), seed, steps=3, batch=9, d=5)


for law in (test_recurrence_equals_a_loop, test_recurrence_vjp):
    law.select = lambda case: case.square
