"""torch.linalg's functions of Householder reflections, batched and right for every tau; the Cayley transform; nearest
orthogonal matrices.
"""

from ._cayley import cayley
from ._procrustes import procrustes
from ._qr import geqrf, qr
from ._reflectors import householder_product, ormqr

__all__ = ["cayley", "geqrf", "householder_product", "ormqr", "procrustes", "qr"]
