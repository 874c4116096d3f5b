"""The deviation that inverse maps accept; one rule for both faces."""

from isometry._rules import check

#: The machine epsilon of each real type.
_EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


def unitary(tol: float | None, n: int, dtype: str) -> float:
    """The largest entry of |W^H W - I| accepted: the given one, else n sqrt(eps)."""
    return n * skew(dtype) if tol is None else check.tolerance(tol)


def share(tol: float | None, dtype: str) -> float:
    """The distance accepted, in units of the norm of the matrix: the given one, else sqrt(eps)."""
    return skew(dtype) if tol is None else check.tolerance(tol)


def skew(dtype: str) -> float:
    """The largest entry of |A + A^H| accepted, in units of the largest entry of that matrix: sqrt(eps)."""
    return float(_EPS[check.REAL[dtype]] ** 0.5)
