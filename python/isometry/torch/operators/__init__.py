"""The operators of the torch face, one module each."""

from ._operator import Operator
from .cayley import Cayley
from .dense import Dense
from .householder import Householder

__all__ = ["Cayley", "Dense", "Householder", "Operator"]
