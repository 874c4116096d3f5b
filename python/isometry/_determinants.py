"""Determinants of operators, in what NumPy's arrays and torch's tensors share; `xp` is either package."""

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from operator import mul
from typing import Any

from isometry._objects._declaration import Declaration


def of_arguments(xp: Any, declaration: Declaration, arrays: Sequence[Any], complex_: bool) -> Any:
    """The formula of a declaration on its arguments, which broadcast against each other; None where it has none.

    Trained arguments that it does not read count as 0 x: their gradient is zero, and NaN passes.
    """
    formula = declaration.determinant
    if formula is None or (complex_ and formula.real):
        return None
    if formula.factors:
        return of_factors(xp, arrays)
    sizes = declaration.sizes(*[None if a is None else tuple(a.shape) for a in arrays])
    found: Any = formula.of_sizes(sizes)
    if found is None:
        return None
    for argument, a in zip(declaration.arguments, arrays, strict=True):
        if a is None or argument.kind == "shape":
            continue
        if argument.name in formula.permutations:
            found = found * parity(xp, a)
            continue
        lead = a.shape[: a.ndim - argument.rank]
        a = a.reshape(*lead, prod(a.shape[len(lead) :]))
        if argument.name in formula.products:
            found = found * a.prod(-1)
        elif argument.name in formula.turns:  # not the sum of angles, which rounds where they are large
            found = found * (xp.cos(a) + formula.turns[argument.name] * 1j * xp.sin(a)).prod(-1)
        elif argument.trained:
            found = found + (0 * a).sum(-1)
    return found


def parity(xp: Any, permutation: Any) -> Any:
    """+-1 for permutations (*, n): n minus the number of cycles is a number of exchanges that make it.

    A cycle has one index that is the least of it, found by doubling the steps, for all permutations in one array.
    """
    n, step = permutation.shape[-1], permutation.reshape(-1)
    place = xp.ones_like(step).cumsum(0) - 1
    step, least = step + place // n * n, place
    for _ in range(n.bit_length()):
        least, step = xp.minimum(least, least[step]), step[step]
    cycles = (least == place).reshape(permutation.shape).sum(-1)
    return 1 - (n - cycles) % 2 * 2


def of_factors(xp: Any, factors: Sequence[Any]) -> Any:
    """det(A_1 (x) A_2 (x) ...) is the product of det(A_f)^(n / n_f), and 0 where the A_f are not square."""
    if any([a.shape[-2] != a.shape[-1] for a in factors]):  # noqa: C419  torch.compile
        return sum([of_singular(a) for a in factors])
    n = prod([a.shape[-1] for a in factors])
    return reduce(mul, [power(xp.linalg.det(a), n // a.shape[-1]) for a in factors])


def power(base: Any, exponent: int) -> Any:
    """A positive integer power by products: torch's complex power of zero is NaN."""
    half = power(base * base, exponent // 2) if exponent > 1 else 1
    return half * base if exponent % 2 else half


def of_product(operators: Sequence[Any], backend: str | None, matrix: Callable[..., Any]) -> Any:
    """The product of the determinants of square factors, 0 where one of the others is narrow; None elsewhere."""
    n = operators[0].shape[0]
    if all([op.shape == (n, n) for op in operators]):  # noqa: C419  torch.compile
        return reduce(mul, [op._determinant(backend) for op in operators])
    if min([op.shape[1] for op in operators]) < n:
        return of_singular(matrix(backend=backend))
    return None


def of_singular(w: Any) -> Any:
    """0 of matrices that are singular whatever their arguments, with gradients of zeros."""
    return (0 * w).sum((-2, -1))


def of_matrix(xp: Any, w: Any, unitary: bool) -> Any:
    """By elimination; of modulus 1 where W is unitary."""
    found = xp.linalg.det(w)
    return found / abs(found) if unitary else found
