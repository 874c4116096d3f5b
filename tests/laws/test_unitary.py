"""W^H W = I within e(W) <= 20, and apply preserves norms."""

import numpy as np

import reference as ref
from registry import members
from tolerance import UNITARITY, close, forward


def unitary(subject, rng):
    w = subject.matrix()
    assert w.dtype == subject.dtype
    for index in members(subject.batch_shape):
        assert ref.orthogonality_error(w[index]) <= UNITARITY, f"e(W) = {ref.orthogonality_error(w[index]):.3g}"
    x = ref.normal(rng, 3, *subject.batch_shape, w.shape[-1], dtype=subject.dtype)
    out = subject.apply(x)
    assert out.dtype == subject.dtype
    norms = np.linalg.norm(ref.wide(out), axis=-1), np.linalg.norm(ref.wide(x), axis=-1)
    close(*norms, forward(subject.dtype, subject.factors), "norms")


def test_unitary(make, seed):
    for n in (1, 2, 5, 16, 33):
        unitary(make(n), seed)
    unitary(make(6, (3,)), seed)
    unitary(make(64), seed)


test_unitary.select = lambda case: case.object.declaration.unitary
