"""Kronecker products: W = W_0 (x) W_1 (x) ... (x) W_{F-1} of factors (p_f, q_f), the index of factor 0 slowest."""

from collections.abc import Sequence
from math import prod

from isometry._objects._declaration import Declaration, Determinant
from isometry._rules import check

KRONECKER = Declaration(
    "Kronecker",
    "kronecker",
    matrix=("p", "q"),
    bind=lambda sizes: {axis: prod(each) for axis, each in sizes.items()},
    loose=("factors",),
    determinant=Determinant(factors=True),
)


def listed(factors: object) -> list[object]:
    """The factors one by one."""
    if isinstance(factors, (str, bytes, dict)) or not hasattr(factors, "__iter__"):
        check.kind("factors", "a sequence of matrices", factors)
    found = list(factors)
    if any([one is None for one in found]):  # noqa: C419  torch.compile does not trace a generator here
        check.kind("factors", "matrices each", None)
    return found


def sizes(n: int, factor_sizes: Sequence[int] | None) -> list[int]:
    """The sizes of the square factors of an n x n product: as given, or the prime factors of n."""
    n = check.count("n", n, 1)
    if factor_sizes is None:
        return _primes(n)
    if isinstance(factor_sizes, (str, bytes, dict)) or not hasattr(factor_sizes, "__iter__"):
        check.kind("factor_sizes", "a sequence of integers", factor_sizes)
    given = [check.count("factor_sizes", size, 1) for size in factor_sizes]
    if not given or prod(given) != n:
        raise ValueError(f"factor_sizes must multiply up to n = {n}, not {given}")
    return given


def shapes(p: int, q: int, factor_sizes: Sequence[int | tuple[int, int]] | None) -> list[tuple[int, int]]:
    """The shapes of the factors of a p x q product; a number is the size of a square one. None: the primes of p = q."""
    if p < 1 or q < 1:
        raise ValueError(f"w must have at least one row and one column, not the shape {(p, q)}")
    if factor_sizes is None:
        if p != q:
            raise ValueError(f"factor_sizes must be given for a w that is not square: its shape is {(p, q)}")
        return [(prime, prime) for prime in _primes(p)]
    if isinstance(factor_sizes, (str, bytes, dict)) or not hasattr(factor_sizes, "__iter__"):
        check.kind("factor_sizes", "a sequence of integers or pairs of them", factor_sizes)
    given = []
    for size in factor_sizes:
        both = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
        if len(both) != 2:
            raise ValueError(f"factor_sizes must hold integers or pairs (p, q), not {both}")
        given.append((check.count("factor_sizes", both[0], 1), check.count("factor_sizes", both[1], 1)))
    if not given or (prod(rows for rows, _ in given), prod(columns for _, columns in given)) != (p, q):
        raise ValueError(f"factor_sizes must multiply up to the shape of w, {(p, q)}, not {given}")
    return given


def _primes(n: int) -> list[int]:
    found, p = [], 2
    while p * p <= n:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return [*found, n] if n > 1 or not found else found
