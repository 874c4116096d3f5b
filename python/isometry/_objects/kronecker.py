"""Kronecker products: W = W_0 (x) W_1 (x) ... (x) W_{F-1} of factors (p_f, q_f), the index of factor 0 slowest."""

from collections.abc import Sequence
from math import prod

from isometry._objects._declaration import Argument, Declaration
from isometry._rules import check
from isometry._rules.check import Shape


class _Factors(Declaration):
    """The sizes of the product are the products of those of its factors; it has no batch."""

    def check(self, *shapes: Shape | None) -> tuple[Shape, Shape]:
        if not shapes:
            raise ValueError("factors must have at least one entry")
        sizes = [shape for shape in shapes if shape is not None and len(shape) == 2 and 0 not in shape]
        for f, shape in enumerate(shapes):
            if shape not in sizes:
                raise ValueError(f"factors must have shape (p, q) with p, q >= 1 each: factor {f} has {shape}")
        # Lists: torch.compile does not trace a generator here.
        return (prod([size[0] for size in sizes]), prod([size[1] for size in sizes])), ()


KRONECKER = _Factors("Kronecker", "kronecker", (Argument("factors", "p q", list=True),), matrix=("p", "q"))


def listed(factors: object) -> list[object]:
    """The factors one by one."""
    if isinstance(factors, str | bytes | dict) or not hasattr(factors, "__iter__"):
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
    if isinstance(factor_sizes, str | bytes | dict) or not hasattr(factor_sizes, "__iter__"):
        check.kind("factor_sizes", "a sequence of integers", factor_sizes)
    given = [check.count("factor_sizes", size, 1) for size in factor_sizes]
    if not given or prod(given) != n:
        raise ValueError(f"factor_sizes must multiply up to n = {n}, not {given}")
    return given


def _primes(n: int) -> list[int]:
    found, p = [], 2
    while p * p <= n:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return [*found, n] if n > 1 or not found else found
