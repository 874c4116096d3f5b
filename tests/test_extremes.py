"""No function of the NumPy face warns of huge, tiny and infinite entries: the suite makes warnings errors."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES
from test_odd_arguments import CALLS

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


def extremes(a, dtype):
    """The array with its entries at the ends of the range, and as they cannot be."""
    info = np.finfo(dtype)
    for size in (info.max, info.max**0.5, info.max**0.49, info.tiny, info.smallest_subnormal, np.inf, np.nan):
        with np.errstate(all="ignore"):
            value = (a * size).astype(dtype)
        yield value


def tried(function, *arguments, **keywords):
    """A call that may refuse its arguments by an error, not by a warning; None then."""
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError):
        return None


@DTYPE
@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("numpy")])
def test_arguments_of_functions(name, dtype):
    call, given = CALLS[name]
    checks = [{"check_finite": False}, {}] if "check_finite" in given else [{}]
    arrays = {k: np.asarray(a) for k, a in given.items() if isinstance(a, (np.ndarray, list))}
    for argument, a in arrays.items():
        for value in extremes(a, dtype):
            for check in checks:
                tried(call, **{**given, **check, argument: value})


def test_arguments_of_operators(case, seed):
    n = case.size(4)
    given = case.draw(seed, n)
    for argument, a in given.items():
        for value in extremes(a, a.dtype) if a.dtype.kind in "fc" else ():
            op = tried(case.build, iso, {**given, argument: value}, n)
            if op is not None:
                x, y = (np.ones((2, size), op.dtype) for size in op.shape[::-1])
                more = [getattr(op, name) for name in dir(op) if name.startswith(("as_", "to_"))]
                for method in (op.matrix, op.det, *more):
                    tried(method, check_finite=False)
                tried(op.matrix_vjp, np.ones(op.shape, op.dtype), check_finite=False)
                tried(op.apply_vjp, x, y, check_finite=False)
                tried(op.apply_adjoint_vjp, y, x, check_finite=False)


@DTYPE
def test_steps_of_any_length(dtype, seed):
    a = ref.normal(seed, 4, 4, dtype=dtype)
    for w in extremes(a, dtype):
        for rate in (0.0, 1e-300, 1.0, 1e300):
            for pair in ((w, a), (a, w), (w, w)):
                tried(iso.cayley_step, *pair, rate, check_finite=False)


@DTYPE
def test_the_orthogonality_error_of_any_size(dtype):
    """That of s I is |s^2 - 1| / (n eps), or infinite, in both faces."""
    for w in (1e150 * np.eye(3, dtype=np.float64), *extremes(np.eye(3), dtype)):
        if np.isfinite(w).all():
            with np.errstate(over="ignore"):
                expected = abs(np.float64(abs(w[0, 0])) ** 2 - 1) / (3 * float(np.finfo(w.dtype).eps))
            assert iso.orthogonality_error(w) == pytest.approx(expected)
            found = it.orthogonality_error(torch.from_numpy(w))
            assert found.item() == pytest.approx(expected) or (
                expected > torch.finfo(found.dtype).max and found.isinf()
            )
