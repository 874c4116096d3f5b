"""The LSTM, with the gates i, f, g, o in the order of its arrays."""

import numpy as np

from reference.gru import sigmoid
from reference.numbers import wide
from reference.recurrence import over_time


def lstm(x, w, u, b=None, h0=None, c0=None, **options):
    """h and c of every step side by side, (T, B, 2n)."""
    x, w, u = wide(x), wide(w), wide(u)
    n = w.shape[-1]
    b = np.zeros((4, n)) if b is None else wide(b)

    def step(x, h, c):
        i, f, g, o = w @ h + u @ x + b
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    return over_time(step, x, n, (h0, c0), **options)
