"""The operators of the NumPy face, one module each."""

from isometry.operators._adjoint import Adjoint
from isometry.operators._block_diagonal import BlockDiagonal
from isometry.operators._columns import Columns
from isometry.operators._composition import Composition
from isometry.operators._operator import Operator
from isometry.operators.bounded_svd import BoundedSvd
from isometry.operators.cayley import Cayley
from isometry.operators.circulant import Circulant
from isometry.operators.dense import Dense
from isometry.operators.exponential import Exponential
from isometry.operators.fourier import FourierProduct
from isometry.operators.givens import Givens
from isometry.operators.hadamard import Hadamard
from isometry.operators.householder import Householder
from isometry.operators.kronecker import Kronecker
from isometry.operators.mesh import Mesh
from isometry.operators.rotation import Rotation

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
