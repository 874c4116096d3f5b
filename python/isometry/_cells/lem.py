"""The long expressive memory: two parts of a state, each with a length of step that input and state determine.

s_1, s_2 = sigma(W_i y_{t-1} + U_i x_t + b_i) with i = 1, 2,
z_t = (1 - dt s_1) * z_{t-1} + dt s_1 * tanh(W_z y_{t-1} + U_z x_t + b_z),
y_t = (1 - dt s_2) * y_{t-1} + dt s_2 * tanh(W_y z_t + U_y x_t + b_y).

A state is (y, z), 2n numbers in the kernel's h0. Saved for backward are s_1, s_2 and both tanh of every step.
"""

from isometry._cells._declaration import Cell
from isometry._rules import check

NOTES = {"w": "the matrices of both gates, of z and of y"}
STACKED = Cell("lem", as_given="w and x", notes=NOTES)
LEM = Cell("lem", as_given="w and x", notes=NOTES, state=("y0", "z0"))


def setting(dt: object) -> tuple[float]:
    """The number of the law, after a check of it."""
    return (check.finite_number("dt", dt),)
