"""The operators of the NumPy face, one module each."""

from isometry.operators._adjoint import Adjoint
from isometry.operators._composition import Composition
from isometry.operators._operator import Operator
from isometry.operators.cayley import Cayley
from isometry.operators.dense import Dense
from isometry.operators.fourier import FourierProduct
from isometry.operators.householder import Householder
from isometry.operators.kronecker import Kronecker

__all__ = [
    "Adjoint",
    "Cayley",
    "Composition",
    "Dense",
    "FourierProduct",
    "Householder",
    "Kronecker",
    "Operator",
]
