"""The principal logarithm of orthogonal and unitary matrices.

Eigenvectors come from Hermitian or skew problems alone, so that they are orthonormal for clusters of eigenvalues too.

Complex: Z = e^{i a} W, where a turns the widest gap between eigenvalues to -1. H = i (2 (I + Z)^{-1} - I) is Hermitian
with the eigenvectors of W and the eigenvalues tan(angle / 2). One of the n gaps is 2 pi / n or wider, so that H is of
size n at most and the error a few n eps.

Real: the eigenvectors of W + W^T divide space at the widest gap between cosines in the middle. For the half K on the
side of 1, or -K for that of -1, a = 2 (I + K)^{-1} - I is skew and bounded. It has a basis of planes x, y with
a y = s x and a x = -s y, in which K turns by 2 atan s, or by 2 atan s - pi. An odd number of dimensions on the side of
-1 means determinant -1. Those of two and three rows have a closed form, by the quaternion, in the core.
"""

import numpy as np

from isometry import _core
from isometry._arrays import Array, real_type
from isometry._inverse.unitarity import unitary, widened

#: The cosines between which space is divided.
MIDDLE = 0.7


def arguments(w: Array, tol: float) -> dict[str, Array]:
    """upper and, for a complex W (nb, n, n), diagonal of the exponential that is W."""
    n = w.shape[-1]
    if w.dtype.kind != "c" and n in (2, 3):
        upper = np.empty((len(w), n * (n - 1) // 2), w.dtype)
        _core.exponential_from_matrix(np.ascontiguousarray(w), upper, tol)
        return {"upper": upper}
    wide = widened(w)
    unitary(wide, tol)
    a = logarithm(wide)
    found = {"upper": a[(..., *np.triu_indices(n, 1))].astype(w.dtype)}
    if w.dtype.kind == "c":
        found["diagonal"] = np.diagonal(a, axis1=-2, axis2=-1).imag.astype(real_type(w.dtype))
    return found


def logarithm(w: Array) -> Array:
    """A (nb, n, n), skew, with exp(A) = W and eigenvalues i angle, -pi < angle <= pi.

    Raises
    ------
    ValueError
        For a real matrix of determinant -1, which is no exponential.
    """
    if w.dtype.kind == "c":
        return _complex(w)
    a = np.empty_like(w)
    cosines, vectors = np.linalg.eigh((w + _t(w)) / 2)
    bounded = np.clip(cosines, -MIDDLE, MIDDLE)
    ends = np.full((len(w), 1), MIDDLE)
    split = np.diff(np.concatenate((-ends, bounded, ends), -1), axis=-1).argmax(-1)  # dimensions on the side of -1
    odd = np.flatnonzero(split % 2)
    if len(odd):
        raise ValueError(
            f"w must have determinant 1 to be the exponential of a real matrix, but that of matrix {odd[0]} is -1; a "
            "complex w has a logarithm always, and nearest=True takes the nearest rotation"
        )
    for k in np.unique(split):
        own = split == k
        left, right = vectors[own, :, :k], vectors[own, :, k:]
        a[own] = _planes(w[own], left, True) + _planes(w[own], right, False)
    return a


def _t(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def _complex(w: Array) -> Array:
    n = w.shape[-1]
    angles = np.sort(np.angle(np.linalg.eigvals(w)), -1)
    gaps = np.diff(angles, axis=-1, append=angles[:, :1] + 2 * np.pi)
    widest = gaps.argmax(-1)[:, None]
    middle = np.take_along_axis(angles + gaps / 2, widest, -1)
    z = np.exp(1j * (np.pi - middle))[..., None] * w
    h = 1j * (2 * np.linalg.inv(np.eye(n) + z) - np.eye(n))
    _, v = np.linalg.eigh((h + _t(h).conj()) / 2)
    turns = np.angle((v.conj() * (w @ v)).sum(-2))
    turns = np.where(turns < -np.pi + 8 * n * np.finfo(float).eps, np.pi, turns)  # -1 has the angle pi
    a = (v * (1j * turns)[:, None]) @ _t(v).conj()
    return (a - _t(a).conj()) / 2


def _planes(w: Array, basis: Array, near: bool) -> Array:
    """The logarithm on a subspace (nb, n, d) on the side of -1 (`near`) or of 1."""
    k = _t(basis) @ w @ basis
    d = k.shape[-1]
    a = 2 * np.linalg.inv(np.eye(d) + (-k if near else k)) - np.eye(d)
    x, y, s = skew_planes((a - _t(a)) / 2)
    angle = 2 * np.arctan(s) - (np.pi if near else 0.0)
    x, y = basis @ x, basis @ y
    turn = (y * angle[:, None]) @ _t(x)
    return turn - _t(turn)


def skew_planes(a: Array) -> tuple[Array, Array, Array]:
    """Orthonormal x, y (nb, d, d // 2) and s >= 0 with a = sum s (x y^T - y x^T), for skew a (nb, d, d).

    Reflections make a tridiagonal; it then maps even coordinates to odd ones and back, by M and -M^T, and the singular
    vectors of M are the planes.
    """
    a, d = a.copy(), a.shape[-1]
    p = np.broadcast_to(np.eye(d), a.shape).copy()
    for j in range(d - 2):
        u = a[:, j + 1 :, j].copy()
        norm = np.linalg.norm(u, axis=-1)
        u[:, 0] += np.copysign(norm, u[:, 0])
        size = np.linalg.norm(u, axis=-1, keepdims=True)
        u = np.divide(u, size, out=np.zeros_like(u), where=size > 0)[..., None]
        _reflect(a, u, j + 1)
        p[:, :, j + 1 :] -= 2 * (p[:, :, j + 1 :] @ u) @ _t(u)
    across = np.zeros((len(a), (d + 1) // 2, d // 2))
    i = np.arange(d - 1)
    across[:, (i + 1) // 2, i // 2] = a[:, i, i + 1] * np.where(i % 2, -1.0, 1.0)
    left, s, right = np.linalg.svd(across, full_matrices=False)
    return p[:, :, ::2] @ left, p[:, :, 1::2] @ _t(right), s


def _reflect(a: Array, u: Array, start: int) -> None:
    """H a H with H = I - 2 u u^T on the coordinates from `start` on; a stays skew."""
    inner = a[:, start:, start:]
    pulled = 2 * inner @ u
    inner += u @ _t(pulled) - pulled @ _t(u)
    edge = a[:, start:, start - 1]
    edge -= 2 * (u @ (_t(u) @ edge[..., None]))[..., 0]
    a[:, start - 1, start:] = -edge
