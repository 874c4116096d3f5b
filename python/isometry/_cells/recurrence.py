"""h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b): the cell of `recurrence`, W any operator."""

from isometry._cells._declaration import Cell

RECURRENCE = Cell("recurrence", as_given="transition and x", shared=("h0",), real=False)
