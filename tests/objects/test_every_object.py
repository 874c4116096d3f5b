"""Every object at the sizes of its registry entry, where it takes other ways than at those of the laws, and the same
bits in both faces."""

import numpy as np
import pytest

import reference as ref
from forms import hermitian
from laws.test_buffers import results
from laws.test_recurrence import bptt, loop
from laws.test_vjp import agree
from registry import CASES, spread
from subjects import NumpySubject, TorchSubject
from tolerance import close, forward, gradient, identical

SIZES = [(case, *sizes) for case in CASES for sizes in case.object.sizes.get(case.variant, ())]


def examine(subject, rng, rows):
    """Values of so many rows, and the gradients of W, of its products and of those with W^H, which are the same."""
    op, w, dtype, batch = subject.operator(), subject.reference(), subject.dtype, subject.batch_shape
    size, steep = forward(dtype, subject.factors), gradient(dtype, subject.factors)
    x, ct = (ref.normal(rng, rows, *batch, k, dtype=dtype) for k in w.shape[:-3:-1])
    w_bar = np.einsum("r...i,r...j->...ij", ref.wide(ct), x.conj()).astype(dtype)
    expected = subject.reference_matrix_vjp(w_bar)
    close(op.matrix(), w, size, "matrix")
    agree(subject, spread(op.matrix_vjp(w_bar)), expected, steep, subject.floor(w_bar))
    for apply, pull, matrix, y, y_ct in (
        (op.apply, op.apply_vjp, w, x, ct),
        (op.apply_adjoint, op.apply_adjoint_vjp, hermitian(w), ct, x),
    ):
        close(apply(y), np.einsum("...ij,r...j->r...i", matrix, y), size, "apply", floor=1.0)
        grads, y_bar = pull(y, y_ct)
        close(y_bar, np.einsum("...ij,r...i->r...j", matrix.conj(), y_ct), steep, "x_bar", floor=1.0)
        agree(subject, spread(grads), expected, steep, subject.floor(w_bar))


@pytest.mark.parametrize(("case_of", "n", "rows", "batch"), [(*sizes, ())[:4] for sizes in SIZES], ids=str)
def test_sizes(case_of, n, rows, batch, seed):
    """One matrix, or a stack."""
    examine(NumpySubject.draw(case_of, seed, n, batch), seed, rows)


SQUARE = [(case, n) for case, n, _, *stacks in SIZES if case.square and not stacks]


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
