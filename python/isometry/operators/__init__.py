"""The operators of the NumPy face, one module each."""

from isometry.operators._operator import Operator
from isometry.operators.cayley import Cayley
from isometry.operators.dense import Dense
from isometry.operators.householder import Householder

__all__ = ["Cayley", "Dense", "Householder", "Operator"]
