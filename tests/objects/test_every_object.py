"""Every object at the sizes of its registry entry, where it takes other ways than at those of the laws, and the same
bits in both faces."""

import numpy as np
import pytest

import reference as ref
from laws.test_buffers import results
from laws.test_recurrence import bptt, loop
from laws.test_vjp import agree
from registry import CASES, spread
from subjects import NumpySubject, TorchSubject
from tolerance import close, forward, gradient, identical

SIZES = [(case, *sizes) for case in CASES for sizes in case.object.sizes.get(case.variant, ())]


@pytest.mark.parametrize(("case_of", "n", "rows"), SIZES, ids=str)
def test_sizes(case_of, n, rows, seed):
    """Values of so many rows, and the gradients of W, of its products and of those with W^H, which are the same."""
    subject = NumpySubject.draw(case_of, seed, n)
    op, w, dtype = subject.operator(), subject.reference(), subject.dtype
    size, steep = forward(dtype, subject.factors), gradient(dtype, subject.factors)
    x, ct = (ref.normal(seed, rows, k, dtype=dtype) for k in w.shape[::-1])
    w_bar = (ref.wide(ct).T @ x.conj()).astype(dtype)
    expected = subject.reference_matrix_vjp(w_bar)
    close(op.matrix(), w, size, "matrix")
    agree(subject, spread(op.matrix_vjp(w_bar)), expected, steep, subject.floor(w_bar))
    for apply, pull, matrix, y, y_ct in (
        (op.apply, op.apply_vjp, w, x, ct),
        (op.apply_adjoint, op.apply_adjoint_vjp, w.conj().T, ct, x),
    ):
        close(apply(y), y @ matrix.T, size, "apply", floor=1.0)
        grads, y_bar = pull(y, y_ct)
        close(y_bar, y_ct @ matrix.conj(), steep, "x_bar", floor=1.0)
        agree(subject, spread(grads), expected, steep, subject.floor(w_bar))


SQUARE = [(case, n) for case, n, _ in SIZES if case.square]


@pytest.mark.parametrize(("case_of", "n"), SQUARE, ids=str)
def test_recurrences_of_these_sizes(case_of, n, seed):
    """Step by step, or through the matrix."""
    for law in (loop, bptt):
        law(NumpySubject.draw(case_of, seed, n), seed)


def test_both_faces_give_the_same_bits(case, seed):
    """They call the same kernels."""
    one = NumpySubject.draw(case, seed, 9)
    other = TorchSubject(case, one.arguments, n=one.n)
    n_out, n_in = one.matrix().shape
    given = (ref.normal(seed, *shape, dtype=case.dtype) for shape in ((3, n_in), (3, n_out), (n_out, n_in)))
    given = [*given, {}]
    for a, b in zip(results(one, *given), results(other, *given), strict=True):
        identical(np.asarray(a), np.asarray(b))
