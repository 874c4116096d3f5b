"""Nearest orthogonal matrices: the kernels, and what takes eigenvectors of W^H A where these leave it.

With W = U V^H of A = U S V^H, W^H A = V S V^H. If W is the nearest rotation, its last eigenvalue has the sign of det A.
"""

import numpy as np

from isometry import _core
from isometry._arrays import Array

# Up to this min(m, n) the kernels decompose the matrices, one per lane.
_SMALL = 8


def small(a: Array) -> bool:
    """Whether these matrices are decomposed: kernels do everything for them."""
    return min(a.shape[-2:]) <= _SMALL


def nearest(a: Array, special: bool, threads: int) -> Array:
    """W of matrices (nb, m, n)."""
    w = np.empty_like(a)
    _core.linalg_procrustes(a, special and small(a), w, threads)
    if special and not small(a):
        turned = np.flatnonzero(np.linalg.slogdet(w)[0] < 0)
        if len(turned):
            # the direction of the smallest singular value is reflected
            v = np.linalg.eigh(_gram(a[turned], w[turned]))[1][..., :1]
            w[turned] -= 2 * (w[turned] @ v) @ np.swapaxes(v, -1, -2)
    return w


def pulled(a: Array, w: Array, ct: Array, special: bool, threads: int) -> Array:
    """The gradient of matrices (nb, m, n) from W and its cotangent."""
    bar = np.empty_like(a)
    left = _core.linalg_procrustes_vjp(a, w, ct, special, bar, threads)
    if left:
        bar[left] = _by_eigenvectors(a[left], w[left], ct[left])
    return bar


def _by_eigenvectors(a: Array, w: Array, ct: Array) -> Array:
    """The gradient where W^H A is nearly singular, or not positive definite."""
    if a.shape[-1] > a.shape[-2]:
        return _adjoint(_by_eigenvectors(_adjoint(a), _adjoint(w), _adjoint(ct)))
    size = np.abs(a).max((-2, -1), keepdims=True)
    size[size == 0] = 1
    a = a / size
    s, v = np.linalg.eigh(_gram(a, w))
    u = w @ v
    along = ct @ v
    x = _adjoint(u) @ along
    least = a.shape[-2] * np.finfo(s.dtype).eps * np.abs(s).max(-1, keepdims=True)
    y = (x - _adjoint(x)) * _inverse(s[..., :, None] + s[..., None, :], least[..., None])
    found = u @ y
    if a.shape[-2] > a.shape[-1]:
        found += (along - u @ x) * _inverse(s, least)[..., None, :]
    return (found @ _adjoint(v)) / size


def _adjoint(a: Array) -> Array:
    return np.conj(np.swapaxes(a, -1, -2))


def _gram(a: Array, w: Array) -> Array:
    """W^H A, Hermitian to the last bit."""
    h = _adjoint(w) @ a
    return (h + _adjoint(h)) / 2


def _inverse(s: Array, least: Array) -> Array:
    """1 / s, and 0 where s is 0 to rounding: there the derivative does not exist."""
    kept = np.abs(s) > least
    return np.divide(1, s, out=np.zeros_like(s), where=kept)
