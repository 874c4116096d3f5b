"""Circulant: its name and what the core does not state, and checks that both faces share."""

from isometry._objects._declaration import Declaration, Determinant

CIRCULANT = Declaration("Circulant", "circulant", determinant=Determinant(turns={"phases": 1}))
