"""h_t = phi(W h_{t-1} + V x_t + b), or W h_{t-1} + phi(V x_t + b): the cell of `recurrence`, W any operator."""

from isometry._cells._declaration import OWN_BIAS, Array, Cell

AFFINE = Cell(
    (
        Array("x", "T B d", needed=True),
        Array("input_weight", "n d", needed=True),
        Array("h0", "B n", shared=True),
        Array("bias", "n"),
        Array(OWN_BIAS, ""),
    ),
    as_given="transition and x",
    real=False,
    settings=("on_input",),
    operator=True,
)
