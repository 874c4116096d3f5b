"""The plain recurrent layer and back-propagation through it."""

from itertools import pairwise

import numpy as np

from reference.activations import activate, activate_vjp
from reference.numbers import wide


def pieces(s, length, reverse, starts):
    """The pieces of a sequence that marks (T, B) cut: the steps of each in order, and the state it starts from.

    In either direction a mark is the first step of its piece in time. The piece of the first step that is taken starts
    from h0, unless that step is marked and the order is forward.
    """
    marks = [] if starts is None else [t for t in range(length) if starts[t, s]]
    for first, end in pairwise([0, *[t for t in marks if t], length]):
        outer = end == length if reverse else first == 0 and 0 not in marks
        steps = range(first, end)
        yield (steps[::-1] if reverse else steps), "h0" if outer else "start_state"


def over_time(step, x, n, first, lengths=None, reverse=False, starts=None, start_state=None, dtype=float):
    """States (T, B, n) from step(x_t, state) -> (state,), one sequence and one step at a time; of several parts, which
    step takes and gives, they are side by side.
    """
    states = np.zeros((*x.shape[:2], len(first) * n), dtype)
    for s in range(x.shape[1]):
        for order, start in pieces(s, len(x) if lengths is None else lengths[s], reverse, starts):
            parts = [initial(a, s, n) for a in first]
            if start == "start_state":
                parts = np.split(initial(start_state, s, len(first) * n), len(first))
            for t in order:
                parts = step(x[t, s], *parts)
                states[t, s] = np.concatenate(parts)
    return states


def preactivation(w, x, v, h, b):
    """z_t = W h_{t-1} + V x_t + b for one sequence, its two terms separately."""
    return w @ h, v @ x + (0 if b is None else b)


def recurrence(
    w, x, v, h0=None, bias=None, activation="tanh", activation_bias=None, slope=0.1, activation_on="all",
    lengths=None, reverse=False, starts=None, start_state=None,
):  # fmt: skip
    """States (T, B, n)."""
    w, x, v = wide(w), wide(x), wide(v)
    given = [wide(a) for a in (w, x, v, h0, bias, start_state) if a is not None]

    def step(x, h):
        hidden, drive = preactivation(w, x, v, h, bias)
        if activation_on == "all":
            return (activate(hidden + drive, activation, activation_bias, slope),)
        return (hidden + activate(drive, activation, activation_bias, slope),)

    return over_time(step, x, len(w), (h0,), lengths, reverse, starts, start_state, np.result_type(*given))


def initial(h0, s, n):
    if h0 is None:
        return np.zeros(n)
    return wide(h0) if np.ndim(h0) == 1 else wide(h0)[s]


def recurrence_vjp(
    w, x, v, ct, h0=None, bias=None, activation="tanh", activation_bias=None, slope=0.1, activation_on="all",
    lengths=None, reverse=False, starts=None, start_state=None,
):  # fmt: skip
    """Back-propagation through time: a dict with "w", "x", "input_weight", "h0", "bias", "activation_bias" and
    "start_state".
    """
    w, x, v, ct = wide(w), wide(x), wide(v), wide(ct)
    steps, batch, n = len(x), x.shape[1], len(w)
    law = (activation, activation_bias, slope, activation_on, lengths, reverse, starts, start_state)
    states = recurrence(w, x, v, h0, bias, *law)
    kind = np.result_type(states, ct)
    w_bar, x_bar, v_bar = np.zeros(w.shape, kind), np.zeros(x.shape, kind), np.zeros(v.shape, kind)
    b_bar, first = np.zeros(n, kind), {"h0": h0, "start_state": start_state}
    first_bars = {name: np.zeros((batch, n), kind) for name in first}
    a_bar = None if activation_bias is None else np.zeros(np.shape(activation_bias))
    for s in range(batch):
        for order, start in pieces(s, steps if lengths is None else lengths[s], reverse, starts):
            g = np.zeros(n, kind)
            for k in range(len(order) - 1, -1, -1):
                t, g = order[k], g + ct[order[k], s]
                before = states[order[k - 1], s] if k else initial(first[start], s, n)
                hidden, drive = preactivation(w, x[t, s], v, before, bias)
                z = hidden + drive if activation_on == "all" else drive + np.zeros(n, kind)
                drive_bar, bias_bar = activate_vjp(z[None], activation, g[None], activation_bias, slope)
                drive_bar = drive_bar[0]
                hidden_bar = drive_bar if activation_on == "all" else g
                w_bar += np.outer(hidden_bar, before.conj())
                v_bar += np.outer(drive_bar, x[t, s].conj())
                b_bar += drive_bar
                x_bar[t, s] = v.conj().T @ drive_bar
                g = w.conj().T @ hidden_bar
                if a_bar is not None:
                    a_bar += bias_bar
            first_bars[start][s] += g
    bars = {"w": w_bar, "x": x_bar, "input_weight": v_bar, "bias": b_bar, "activation_bias": a_bar}
    return bars | {name: of_all(bar, first[name]) for name, bar in first_bars.items()}


def of_all(bar, state):
    """The gradient of an initial state, summed where one serves all sequences."""
    return bar.sum(axis=0) if state is not None and np.ndim(state) == 1 else bar
