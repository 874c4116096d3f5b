"""Products of Householder reflections in LAPACK's storage, QR factorisations, the Cayley transform, nearest
orthogonal matrices.

The names and layouts of torch.linalg, batched, with the gradients as functions of their own.
"""

from isometry.linalg._cayley import cayley, cayley_vjp
from isometry.linalg._procrustes import procrustes, procrustes_vjp
from isometry.linalg._qr import geqrf, geqrf_vjp, qr
from isometry.linalg._reflectors import householder_product, householder_product_vjp, ormqr, ormqr_vjp

__all__ = [
    "cayley",
    "cayley_vjp",
    "geqrf",
    "geqrf_vjp",
    "householder_product",
    "householder_product_vjp",
    "ormqr",
    "ormqr_vjp",
    "procrustes",
    "procrustes_vjp",
    "qr",
]
