"""The operators of the torch face, one module each."""

from ._adjoint import Adjoint
from ._block_diagonal import BlockDiagonal
from ._columns import Columns
from ._composition import Composition
from ._operator import Operator
from .bounded_svd import BoundedSvd
from .cayley import Cayley
from .circulant import Circulant
from .dense import Dense
from .exponential import Exponential
from .fourier import FourierProduct
from .givens import Givens
from .hadamard import Hadamard
from .householder import Householder
from .kronecker import Kronecker
from .mesh import Mesh
from .rotation import Rotation

__all__ = [
    "Adjoint",
    "BlockDiagonal",
    "BoundedSvd",
    "Cayley",
    "Circulant",
    "Columns",
    "Composition",
    "Dense",
    "Exponential",
    "FourierProduct",
    "Givens",
    "Hadamard",
    "Householder",
    "Kronecker",
    "Mesh",
    "Operator",
    "Rotation",
]
