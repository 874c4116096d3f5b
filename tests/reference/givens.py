"""Products of plane rotations, multiplied out as matrices."""

import numpy as np

from reference.numbers import wide


def _plane(angle, pair, n, change=False):
    """G of a pair, or its derivative in the angle."""
    g = np.zeros((n, n)) if change else np.eye(n)
    c, s = (-np.sin(angle), np.cos(angle)) if change else (np.cos(angle), np.sin(angle))
    g[np.ix_(pair, pair)] = [[c, -s], [s, c]]
    return g


def _product(factors, n):
    return np.linalg.multi_dot([np.eye(n), *factors, np.eye(n)])


def givens(angles, pairs, n):
    """W = G_1 G_2 ... G_m."""
    return _product([_plane(angle, pair, n) for angle, pair in zip(wide(angles), pairs, strict=True)], n)


def givens_vjp(w_bar, angles, pairs, n):
    """Each angle moves one factor: Re sum conj(W_bar) left dG right."""
    planes = list(zip(wide(angles), pairs, strict=True))
    factors = [_plane(*plane, n) for plane in planes]
    moved = [
        _product([*factors[:k], _plane(*plane, n, change=True), *factors[k + 1 :]], n) for k, plane in enumerate(planes)
    ]
    return {"angles": np.array([np.vdot(wide(w_bar), change).real for change in moved])}
