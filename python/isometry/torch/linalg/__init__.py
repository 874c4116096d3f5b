"""torch.linalg's functions of Householder reflections, and the Cayley transform: batched, and right for every tau."""

from ._cayley import cayley
from ._qr import geqrf
from ._reflectors import householder_product, ormqr

__all__ = ["cayley", "geqrf", "householder_product", "ormqr"]
