"""Products of plane rotations, multiplied out as matrices."""

import numpy as np

from reference.numbers import cotangent, product, wide


def _plane(angle, pair, n, change=False):
    """G of a pair, or its derivative in the angle."""
    g = np.zeros((n, n)) if change else np.eye(n)
    c, s = (-np.sin(angle), np.cos(angle)) if change else (np.cos(angle), np.sin(angle))
    g[np.ix_(pair, pair)] = [[c, -s], [s, c]]
    return g


def givens(angles, pairs, n):
    """W = G_1 G_2 ... G_m."""
    return product([_plane(angle, pair, n) for angle, pair in zip(wide(angles), pairs, strict=True)], n)


def givens_vjp(w_bar, angles, pairs, n):
    """Each angle moves one factor."""
    planes = list(zip(wide(angles), pairs, strict=True))
    factors = [_plane(*plane, n) for plane in planes]
    moved = [_plane(*plane, n, change=True) for plane in planes]
    return {"angles": np.array([np.vdot(cotangent(factors, k, w_bar), g).real for k, g in enumerate(moved)])}
