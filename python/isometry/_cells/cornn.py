"""The coupled oscillatory network: y and z are the positions and velocities of n driven, damped oscillators.

z_t = z_{t-1} + dt (tanh(W_y y_{t-1} + W_z z_{t-1} + U x_t + b) - gamma y_{t-1} - epsilon z_{t-1}),
y_t = y_{t-1} + dt z_t.

A state is (y, z), 2n numbers in the kernel's h0. Saved for backward is the tanh of every step.
"""

from isometry._cells._declaration import Cell
from isometry._rules import check

NOTES = {"w": "the matrices of y and z"}
STACKED = Cell("cornn", as_given="w and x", notes=NOTES)
CORNN = Cell("cornn", as_given="w and x", notes=NOTES, state=("y0", "z0"))


def setting(dt: object, gamma: object, epsilon: object) -> tuple[float, float, float]:
    """The numbers of the law, after a check of each."""
    finite = check.finite_number
    return finite("dt", dt), finite("gamma", gamma), finite("epsilon", epsilon)
