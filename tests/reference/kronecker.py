"""Kronecker products."""

import functools

import numpy as np

from reference.numbers import wide


def kronecker(factors):
    """W = W_0 (x) W_1 (x) ... (x) W_{F-1}."""
    return functools.reduce(np.kron, [wide(factor) for factor in factors])


def kronecker_vjp(w_bar, factors):
    """The gradient of each factor: that of W, a tensor of all their axes, contracted with the other factors."""
    rows, columns = ([factor.shape[axis] for factor in factors] for axis in (0, 1))
    many = len(factors)
    bar = wide(w_bar).reshape(*rows, *columns)
    found = []
    for f in range(many):
        operands = [bar, [*range(2 * many)]]
        for g, factor in enumerate(factors):
            if g != f:
                operands += [wide(factor).conj(), [g, many + g]]
        found.append(np.einsum(*operands, [f, many + f]))
    return {"factors": found}
