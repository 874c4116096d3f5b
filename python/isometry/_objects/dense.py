"""Any matrix as an operator: W = weight."""

from isometry._objects._declaration import Argument, Declaration

DENSE = Declaration("Dense", "dense", (Argument("weight", "p q"),), matrix=("p", "q"), loose=("weight",))
