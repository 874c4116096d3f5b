"""Any matrix as an operator: W = weight."""

from isometry._objects._declaration import Declaration

DENSE = Declaration("Dense", "dense", matrix=("p", "q"), loose=("weight",))
