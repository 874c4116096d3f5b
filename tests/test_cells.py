"""The functions of the gated cells in the NumPy face: cotangents in parts, refusals."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from faces import tensor
from tolerance import close, sequence_gradient

STEPS, BATCH, N, FEATURES = 7, 3, 4, 2
SHAPES = {
    "gru": {"w": (3, N, N), "u": (3, N, FEATURES), "b": (3, N)},
    "goru": {"w": (2, N, N), "u": (3, N, FEATURES), "b": (3, N)},
    "lstm": {"w": (4, N, N), "u": (4, N, FEATURES), "b": (4, N)},
    "rum": {
        "w": (2 * N, N),
        "u": (2 * N, FEATURES),
        "b": (2 * N,),
        "embed_weight": (N, FEATURES),
        "embed_bias": (N,),
    },
}


def drawn(name):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((STEPS, BATCH, FEATURES))
    arrays = {key: 0.5 * rng.standard_normal(shape) for key, shape in SHAPES[name].items()}
    first = ("h0", "c0") if name == "lstm" else ("h0",)
    starts = {key: rng.standard_normal((BATCH, N)) for key in first}
    turn = (iso.Cayley(rng.standard_normal(N * (N - 1) // 2)),) if name == "goru" else ()
    return turn, x, arrays, starts


def test_the_memory_of_a_rum_has_a_cotangent():
    """With lam 1 states and cotangents are pairs; the states alone are enough. The gradients are the torch face's."""
    _, x, arrays, _ = drawn("rum")
    found = iso.rum(x, *arrays.values(), lam=1)
    ct = np.cos(np.arange(found[0].size)).reshape(found[0].shape), np.ones_like(found[1])
    pair = iso.rum_vjp(x, *arrays.values(), found, ct, lam=1)
    alone = iso.rum_vjp(x, *arrays.values(), found[0], ct, lam=1)
    without = iso.rum_vjp(x, *arrays.values(), found[0], ct[0], lam=1)
    leaves = [tensor(a).requires_grad_() for a in (x, *arrays.values())]
    results = it.rum(*leaves, lam=1)
    for cts, grads in (ct, (pair, alone)), ((ct[0], 0 * ct[1]), (without,)):
        expected = torch.autograd.grad(results, leaves, [tensor(c) for c in cts], retain_graph=True)
        for own in grads:
            for name, g in zip(("x", *arrays), expected, strict=True):
                close(own[name], g, sequence_gradient(np.float64, N, STEPS) * 25, name)


@pytest.mark.parametrize("name", SHAPES)
def test_other_states_are_refused(name):
    turn, x, arrays, first = drawn(name)
    states = getattr(iso, name)(*turn, x, *arrays.values(), **first)
    wrong = tuple(a + 1 for a in states) if name == "lstm" else (states[0] if name == "rum" else states) + 1
    with pytest.raises(ValueError, match="states must be what"):
        getattr(iso, name + "_vjp")(*turn, x, *arrays.values(), wrong, wrong, **first)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("argument", ["w", "u", "b"])
def test_messages_name_the_argument(name, argument):
    turn, x, arrays, _ = drawn(name)
    wrong = arrays | {argument: arrays[argument][..., :-1]}
    with pytest.raises(ValueError, match=rf"^{argument} must have shape"):
        getattr(iso, name)(*turn, x, *wrong.values())
    nan = arrays | {argument: np.full_like(arrays[argument], np.nan)}
    with pytest.raises(ValueError, match=argument):
        getattr(iso, name)(*turn, x, *nan.values())
    with pytest.raises(TypeError, match=argument):
        getattr(iso, name)(*turn, x, *(arrays | {argument: 1j * arrays[argument]}).values())


def test_a_state_of_two_parts_is_a_pair():
    _, x, arrays, _ = drawn("lstm")
    marks = np.ones((STEPS, BATCH), bool)
    with pytest.raises(TypeError, match="start_state"):
        iso.lstm(x, *arrays.values(), starts=marks, start_state=np.zeros(N))
