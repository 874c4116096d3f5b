"""The gated recurrent unit."""

import numpy as np

from reference.activations import activate
from reference.numbers import wide
from reference.recurrence import over_time


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def gru(
    x, w, u, b=None, h0=None, reset="before", activation="tanh", activation_bias=None, hidden_bias=None, slope=0.1,
    **options,
):  # fmt: skip
    """States (T, B, n)."""
    x, w, u = wide(x), wide(w), wide(u)
    b = np.zeros(u.shape[:2]) if b is None else wide(b)
    hidden_bias = 0 if hidden_bias is None else wide(hidden_bias)

    def step(x, h):
        drive = u @ x + b
        z, r = (sigmoid(w[g] @ h + drive[g]) for g in (0, 1))
        hidden = w[2] @ (h if reset == "after" else r * h) + hidden_bias
        argument = (r * hidden if reset == "after" else hidden) + drive[2]
        return (z * h + (1 - z) * activate(argument, activation, activation_bias, slope),)

    return over_time(step, x, w.shape[-1], (h0,), **options)
