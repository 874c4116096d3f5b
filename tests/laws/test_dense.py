"""matrix, apply and apply_adjoint are those of the textbook product."""

import numpy as np

import reference as ref
from tolerance import close, forward


def dense(subject, rng):
    w, tolerance = subject.reference(), forward(subject.dtype, subject.factors)
    close(subject.matrix(), w, tolerance, "matrix")
    x = ref.normal(rng, 4, *subject.batch_shape, w.shape[-1], dtype=subject.dtype)
    y = ref.normal(rng, 4, *subject.batch_shape, w.shape[-2], dtype=subject.dtype)
    close(subject.apply(x), np.einsum("...ij,...j->...i", w, x), tolerance, "apply")
    close(subject.apply_adjoint(y), np.einsum("...ji,...j->...i", w.conj(), y), tolerance, "apply_adjoint")


def test_dense(make, seed):
    for n in (3, 4, 7, 8, 16, 17, 31, 32, 33, 50, 65):
        dense(make(n), seed)


def test_dense_stacks(make, seed):
    for n, batch in ((4, (3,)), (8, (17,)), (6, (2, 3)), (5, (1,)), (16, (9,)), (32, (5,))):
        dense(make(n, batch), seed)
