"""The rotational unit of memory."""

import numpy as np

from reference.activations import activate
from reference.gru import sigmoid
from reference.numbers import wide
from reference.recurrence import initial, pieces
from reference.rotation import rotation


def rum(
    x, w, u, embed_weight, b=None, embed_bias=None, h0=None, r0=None, lam=0, eta=None, activation="relu",
    activation_bias=None, slope=0.1, lengths=None, reverse=False, starts=None, start_state=None,
):  # fmt: skip
    """States (T, B, n), and with lam = 1 the rows of the memories behind them, (T + n, B, n)."""
    x, w, u, embed_weight = wide(x), wide(w), wide(u), wide(embed_weight)
    n, batch = w.shape[1], x.shape[1]
    b, embed_bias = (0 if a is None else wide(a) for a in (b, embed_bias))
    states, memories = np.zeros((len(x), batch, n)), np.zeros((n, batch, n))
    for s in range(batch):
        memories[:, s] = np.eye(n) if r0 is None else wide(r0)[s]
        for order, start in pieces(s, len(x) if lengths is None else lengths[s], reverse, starts):
            h = initial({"h0": h0, "start_state": start_state}[start], s, n)
            memory = np.eye(n) if r0 is None or start == "start_state" else wide(r0)[s]
            for t in order:
                keep, tau = np.split(w @ h + u @ x[t, s] + b, 2)
                keep, e = sigmoid(keep), embed_weight @ x[t, s] + embed_bias
                turn = rotation(e, tau) if e.any() and tau.any() else np.eye(n)
                memory = memory @ turn if lam else turn
                h = keep * h + (1 - keep) * activate(e + memory @ h, activation, activation_bias, slope)
                h = states[t, s] = h if eta is None or not h.any() else eta * h / np.linalg.norm(h)
            if not reverse or 0 in order:  # the piece that is read last
                memories[:, s] = memory
    return np.concatenate((states, memories)) if lam else states
