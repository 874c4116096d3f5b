"""The operators of the torch face, one module each."""

from ._adjoint import Adjoint
from ._composition import Composition
from ._operator import Operator
from .bounded_svd import BoundedSvd
from .cayley import Cayley
from .dense import Dense
from .householder import Householder
from .kronecker import Kronecker
from .rotation import Rotation

__all__ = [
    "Adjoint",
    "BoundedSvd",
    "Cayley",
    "Composition",
    "Dense",
    "Householder",
    "Kronecker",
    "Operator",
    "Rotation",
]
