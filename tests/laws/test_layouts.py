"""Results are bitwise equal for every memory layout of every argument, and no argument is modified."""

import numpy as np

import reference as ref
from laws.calls import others
from tolerance import identical


def same_bits(subject, rng, layout):
    n_out, n_in = subject.reference().shape[-2:]
    lead = subject.batch_shape
    x, y, ct = (ref.normal(rng, 4, *lead, k, dtype=subject.dtype) for k in (n_in, n_out, n_out))
    w_bar = ref.normal(rng, *lead, n_out, n_in, dtype=subject.dtype)
    other = subject.with_layout(layout)
    identical(other.matrix(), subject.matrix(), "matrix")
    identical(other.apply(x), subject.apply(x), "apply")
    identical(other.apply_adjoint(y), subject.apply_adjoint(y), "apply_adjoint")
    (grads, x_bar), (plain, plain_x) = other.apply_vjp(x, ct), subject.apply_vjp(x, ct)
    identical(x_bar, plain_x, "x_bar")
    for found, expected in ((grads, plain), (other.matrix_vjp(w_bar), subject.matrix_vjp(w_bar))):
        for name, g in expected.items():
            identical(found[name], g, f"gradient of {name}")
    for name, call in others(subject, rng).items():
        for found, expected in zip(call(other), call(subject), strict=True):
            identical(found, expected, name)


def untouched(subject, rng):
    n_out, n_in = subject.reference().shape[-2:]
    x, ct = (ref.normal(rng, 2, *subject.batch_shape, k, dtype=subject.dtype) for k in (n_in, n_out))
    w_bar = np.ones((*subject.batch_shape, n_out, n_in), subject.dtype)
    held = [*subject.arguments.values(), x, ct, w_bar]
    before = [a.copy() for a in held]
    results = [subject.apply(x), subject.apply_adjoint(ct), subject.matrix(), subject.apply_vjp(x, ct)[1]]
    subject.matrix_vjp(w_bar)
    for a, b in zip(held, before, strict=True):
        identical(a, b, "an argument")
    for r in results:
        assert r.flags.writeable
        assert not any(np.shares_memory(r, a) for a in held), "a result is a fresh array"


def test_layouts(make, seed):
    subject = make(6)
    for layout in list(subject.face.layouts)[1:]:
        same_bits(subject, seed, layout)
        same_bits(make(4, (3,)), seed, layout)


def test_arguments_are_not_modified(make, seed):
    untouched(make(6), seed)
    untouched(make(4, (3,)), seed)
