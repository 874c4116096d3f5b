"""The gated recurrent unit with an operator as W_h, and w (2, n, n); the formula is in `isometry._cells.gru`."""

from isometry._cells._declaration import Cell

GORU = Cell("goru", as_given="w and x", notes={"w": "the matrices of z and r"})
