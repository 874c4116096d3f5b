"""Operators in expressions: adjoints and products obey the laws of operators, `@` is matmul, a key takes members."""

import numpy as np
import pytest

import reference as ref
from backends import served
from forms import FORMS, SQUARE, formed, of_matrices
from laws.test_layouts import broadcast, overwritten
from laws.test_operators import dense, differences, vjp
from laws.test_recurrence import bptt, loop
from registry import DTYPES, is_complex, members, real_of
from tolerance import close, forward, identical

#: Keys of a stack of batch shape (2, 3).
KEYS = (
    0, -1, np.int64(1), slice(1, None), slice(None, None, 2), slice(0, 0), ..., None, (), (1, 2), (..., -1), (0, ...),
    (slice(None), 1), (None, 0, None), (slice(1), slice(1, 3)), [1, 0, 1], np.array([[0], [1]]), ([0, 1], [2, 0]),
    ([0, 1], None, 2), (None, [[1]], slice(2)), np.array([True, False]), (0, np.array([True, False, True])),
    np.array([[True, False, True], [False, True, True]]), (slice(None), [2, 0]), ([], 0), (0, np.array([], int)),
)  # fmt: skip


# ---------------------------------------------------------------- laws


def products(subject, rng):
    """`op @ x` and `x @ op` are matmul with the matrix."""
    w, tolerance = subject.reference(), forward(subject.dtype, subject.factors)
    p, q = w.shape[-2:]
    # the terms of one number may cancel
    floor = lambda x: np.linalg.norm(x) * np.linalg.norm(w) / 10
    for lead in ((), (1,), (2, *subject.batch_shape)):
        for k in (1, p, q):
            x, y = (ref.normal(rng, *lead, *shape, dtype=subject.dtype) for shape in ((q, k), (k, p)))
            close(subject.times(x), w @ x, tolerance, "op @ x", floor(x))
            close(subject.beside(y), y @ w, tolerance, "x @ op", floor(y))
    x, y = (ref.normal(rng, n, dtype=subject.dtype) for n in (q, p))
    close(subject.times(x), w @ x, tolerance, "op @ vector", floor(x))
    close(subject.beside(y), y @ w, tolerance, "vector @ op", floor(y))


def picks(subject, rng):
    """A key of a stack of batch shape (2, 3) takes what it takes of the matrices."""
    del rng
    w = subject.matrix()
    for key in KEYS:
        found, batch = subject.picked(key)
        expected = w[of_matrices(key)]
        assert tuple(batch) == expected.shape[:-2], f"op[{key}] has batch_shape {batch}"
        close(found, expected, forward(subject.dtype, subject.factors), f"op[{key}]")


def refused(call, *arguments):
    """The message of an error, empty where there is none."""
    try:
        call(*arguments)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def converts(subject, rng):
    """Every dtype that has the law and that the backend serves, to and fro."""
    x = ref.normal(rng, 2, *subject.batch_shape, subject.reference().shape[-1], dtype=subject.dtype)
    for dtype in served(DTYPES):
        if is_complex(subject.dtype) and not is_complex(dtype):
            assert "dtype must be complex" in refused(subject.converted, dtype)
            continue
        if is_complex(dtype) and "c" not in subject.case.object.kinds:
            assert "dtype must be real" in refused(subject.converted, dtype)
            continue
        op = subject.converted(dtype)
        w = subject.home(op)
        assert w.dtype == dtype and type(op) is type(subject.operator())
        low = min(real_of(subject.dtype), real_of(dtype), key=lambda t: np.finfo(t).bits)
        close(w, subject.reference(), forward(low, subject.factors), f"{np.dtype(dtype)} of {subject.case}")
        found = op(subject.given(x.astype(dtype)))
        close(
            subject.home(found),
            np.einsum("...ij,...j->...i", subject.reference(), x),
            forward(low, subject.factors),
            "rows",
        )
        if dtype is subject.dtype:
            identical(w, subject.home(subject.operator()))
            identical(subject.home(op.matrix()), subject.matrix())


# ---------------------------------------------------------------- what obeys them


def test_products(make, seed):
    for n, batch in ((4, ()), (17, ()), (5, (3,)), (4, (2, 1))):
        products(make(n, batch), seed)


def test_members(make, seed):
    picks(make(4, (2, 3)), seed)


def test_members_of_broadcast_arguments(make, seed):
    """Every argument in turn has fewer batch axes, or size 1, where the others have the stack's."""
    whole = make(3, (2, 3))
    for name, a in whole.arguments.items():
        for cut in ((0, 0), (0,), (slice(0, 1),), (slice(None), slice(0, 1))):
            subject = whole.with_arguments(**{name: a[cut]})
            if subject.batch_shape == (2, 3):
                picks(subject, seed)


def test_conversions(make, seed):
    for n, batch in ((4, ()), (3, (2, 1))):
        converts(make(n, batch), seed)


@pytest.mark.parametrize("form", [*SQUARE, pytest.param("columns", marks=pytest.mark.long)])
def test_forms(form, face, case, seed):
    draw = lambda n=6, batch=(): formed(form, face).draw(case, seed, n, batch)
    for law in (dense, products, vjp):
        for n, batch in ((3, ()), (8, ()), (4, (3,)), (5, (2, 1))):
            law(draw(n, batch), seed)
    converts(draw(), seed)
    picks(draw(3, (2, 3)), seed)
    for batch, lead in (((3, 1), (4,)), ((2, 1, 3), (5, 1)), ((), ())):
        broadcast(draw(4, batch), seed, lead)
    if real_of(case.dtype) is np.float64:
        differences(draw(5), seed)


def test_columns(face, case, seed):
    for law, batch in ((dense, (2,)), (vjp, ()), (products, (2, 1))):
        law(formed("columns", face).draw(case, seed, 5, batch), seed)


test_columns.select = lambda case: case.dtype in (np.float64, np.complex64)


@pytest.mark.parametrize("form", SQUARE)
def test_forms_in_recurrences(form, face, case, seed):
    for n in (3, 8):
        for law in (loop, bptt):
            law(formed(form, face).draw(case, seed, n), seed)


test_forms_in_recurrences.select = lambda case: case.square


@pytest.mark.parametrize("form", FORMS)
def test_buffers_of_forms(form, face, case, seed, poison, monkeypatch):
    overwritten(formed(form, face).draw(case, seed, 4, (3,)), seed, poison, monkeypatch)


def test_iteration(make, seed):
    del seed
    subject = make(3, (2, 3))
    op = subject.operator()
    w = subject.home(op)
    assert len(op) == 2
    for i, j in members((2, 3)):
        close(subject.home(list(list(op)[i])[j]), w[i, j], forward(w.dtype, 12), "a member")
