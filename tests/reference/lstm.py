"""The LSTM, with the gates i, f, g, o in the order of its arrays."""

import numpy as np

from reference.gru import sigmoid
from reference.numbers import wide
from reference.recurrence import initial, pieces


def lstm(x, w, u, b=None, h0=None, c0=None, lengths=None, reverse=False, starts=None, start_state=None):
    """h and c of every step side by side, (T, B, 2n), one sequence and one step at a time."""
    x, w, u = wide(x), wide(w), wide(u)
    n = w.shape[-1]
    b = np.zeros((4, n)) if b is None else wide(b)
    states = np.zeros((*x.shape[:2], 2 * n))
    for s in range(x.shape[1]):
        for order, start in pieces(s, len(x) if lengths is None else lengths[s], reverse, starts):
            h, c = initial(h0, s, n), initial(c0, s, n)
            if start == "start_state":
                h, c = np.split(initial(start_state, s, 2 * n), 2)
            for t in order:
                i, f, g, o = w @ h + u @ x[t, s] + b
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
                states[t, s] = np.concatenate((h, c))
    return states
