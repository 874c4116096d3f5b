"""Circulant: its name and what the core does not state, and checks that both faces share."""

from isometry._objects._declaration import Declaration

CIRCULANT = Declaration("Circulant", "circulant")
