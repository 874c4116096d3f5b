"""The decomposition of Clements et al. (2016): angles of a brick mesh of n layers from its matrix.

Elements below the diagonal are brought to zero one antidiagonal after the other, by unitary 2 x 2 blocks on two columns
and on two rows in turn. The inverses of the blocks form the layers; what is left of W is diagonal. Any unitary block is
diag(alpha, beta) times a block of the mesh, so that all diagonals can be moved to the left, where they make D.
"""

import numpy as np

from isometry._arrays import Array, real_type
from isometry._inverse.unitarity import unitary, widened
from isometry._objects.mesh import layers

# The entries of W are at most 1 in size; times this power of two denormals have all their digits and an inverse.
_LIFT = 2.0**500


def arguments(w: Array, first: str, tol: float) -> dict[str, Array]:
    """theta, and signs of a real W (nb, n, n), phi and phases of a complex one."""
    wide = widened(w)
    unitary(wide, tol)
    theta, phi, last = brick(wide, first)
    found = {"theta": theta, "signs": last}
    if w.dtype.kind == "c":
        found = {"theta": theta, "phi": phi, "phases": np.angle(last)}
    return {name: a.astype(real_type(w.dtype)) for name, a in found.items()}


def half_turns(n: int, count: int, kind: int) -> tuple[Array, Array]:
    """Where pi is added to phi (P,) and to the phases (n,) between the convention of a brick mesh and that of Clements
    et al.: 0 or 1 each.

    Their block is T(theta, phi) = diag(1, -1) B(theta + pi / 2, -phi), B ours, and a diagonal passes through a block
    from its right to its left by B(theta, phi) diag(a, b) = b B(theta, phi - arg(a / b)). So the signs of all layers
    are moved to the left, into D.
    """
    carry, found = np.zeros(n, np.int64), [np.empty(0, np.int64)]
    for start, many, _ in reversed(list(layers(n, count, kind))):
        i = start + 2 * np.arange(many)
        found.append((carry[i] - carry[i + 1]) % 2)
        carry[i], carry[i + 1] = carry[i + 1], 1 - carry[i + 1]
    return np.concatenate(found[::-1]), carry


def brick(w: Array, first: str) -> tuple[Array, Array, Array]:
    """theta and phi (nb, P) and the diagonal of D (nb, n) of W (nb, n, n) = D F_1 ... F_n; phi is 0 for a real W."""
    n = w.shape[-1]
    # Antidiagonals start with columns (0, 1): F_n then has the pairs (0, 1), (2, 3), ... Of the transpose it is F_1.
    transposed = first == "left" and n % 2 == 0
    blocks, rest = _layers(_t(w) if transposed else w)
    ones = np.ones_like(rest)
    if transposed:
        blocks = blocks[:, ::-1].swapaxes(-1, -2)
        carry, last = rest, ones
    else:
        carry, last = ones, rest
    theta, phi = np.empty((2, len(w), n * (n - 1) // 2))
    at = theta.shape[1]
    for layer in range(n):  # the rightmost first
        start = (n - 1 - layer if first == "left" else layer) % 2
        i = np.arange(start, n - 1, 2)
        own = blocks[:, layer, i] * np.stack((carry[:, i], carry[:, i + 1]), -1)[:, :, None]
        at -= len(i)
        theta[:, at : at + len(i)], phi[:, at : at + len(i)], alpha, beta = _angles(own)
        carry[:, i], carry[:, i + 1] = alpha, beta
    return theta, phi, last * carry


def _layers(w: Array) -> tuple[Array, Array]:
    """W = diag(rest) G_n ... G_1, G_1 on the pairs (0, 1), (2, 3), ...; the block on (i, i + 1) of G_l is
    blocks[:, l - 1, i].
    """
    w, n = w.copy(), w.shape[-1]
    blocks = np.broadcast_to(np.eye(2, dtype=w.dtype), (len(w), n, n, 2, 2)).copy()
    of_rows = []
    for i in range(1, n):
        for j in range(i):
            if i % 2:  # element (n - 1 - j, p) by columns p, p + 1
                p, row = i - j - 1, n - 1 - j
                x, y = _unit(w[:, row, p], w[:, row, p + 1])
                m = np.stack((y, x.conj(), -x, y.conj()), -1).reshape(-1, 2, 2)
                w[:, :, p : p + 2] @= m
                blocks[:, j, p] = _t(m).conj()
            else:  # element (p + 1, j) by rows p, p + 1
                p = n + j - i - 1
                x, y = _unit(w[:, p, j], w[:, p + 1, j])
                m = np.stack((x.conj(), y.conj(), -y, x), -1).reshape(-1, 2, 2)
                w[:, p : p + 2] = m @ w[:, p : p + 2]
                blocks[:, n - 1 - j, p] = _t(m).conj()
                of_rows.append((n - 1 - j, p))
    rest = _phase(np.diagonal(w, axis1=-2, axis2=-1))
    for layer, p in of_rows:  # on the left of what is left
        turn = rest[:, p : p + 2]
        blocks[:, layer, p] *= turn.conj()[:, :, None] * turn[:, None]
    return blocks, rest


def _angles(u: Array) -> tuple[Array, Array, Array, Array]:
    """theta, phi, alpha, beta with U = diag(alpha, beta) [[sin e^{-i phi}, cos], [cos e^{-i phi}, -sin]]."""
    a, b, c, d = u[..., 0, 0], u[..., 0, 1], u[..., 1, 0], u[..., 1, 1]
    if u.dtype.kind != "c":
        return np.arctan2(a, b), np.zeros_like(a), np.ones_like(a), np.where(b * c - a * d < 0, -1.0, 1.0)
    alpha = _phase(b)
    turn = _phase(a) * alpha.conj()
    beta = np.where(np.abs(a) > np.abs(b), -_phase(d), _phase(c) * turn.conj())
    return np.arctan2(np.abs(a), np.abs(b)), -np.angle(turn), alpha, beta


def _unit(x: Array, y: Array) -> tuple[Array, Array]:
    """(x, y) / ||(x, y)||; (0, 1) for zeros."""
    x, y = x * _LIFT, y * _LIFT
    size = np.hypot(np.abs(x), np.abs(y))
    zero = size == 0
    size = np.where(zero, 1, size)
    return x / size, np.where(zero, 1, y / size)


def _phase(z: Array) -> Array:
    """z / |z|; 1 for zeros."""
    z = z * _LIFT
    size = np.abs(z)
    zero = size == 0
    return np.where(zero, 1, z / np.where(zero, 1, size))


def _t(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def pairs(n: int, count: int, kind: int) -> Array:
    """The coordinates (i, j) of all pairs, (P, 2), in the order of their angles."""
    found = [np.empty((0, 2), np.int64)]
    for start, number, distance in layers(n, count, kind):
        block, place = np.divmod(np.arange(number), distance)
        i = start + 2 * distance * block + place
        found.append(np.stack((i, i + distance), -1))
    return np.concatenate(found)
