"""The gated recurrent unit and back-propagation through it."""

import numpy as np

from reference.activations import activate, activate_vjp
from reference.numbers import wide
from reference.recurrence import initial, of_all, pieces


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def step(h, x, w, u, b, hidden_bias, reset):
    """Gates z and r, W_h's operand and its product, and the argument of phi."""
    drive = u @ x + b
    z, r = (sigmoid(w[g] @ h + drive[g]) for g in (0, 1))
    operand = h if reset == "after" else r * h
    product = w[2] @ operand + hidden_bias
    return z, r, operand, product, (r * product if reset == "after" else product) + drive[2]


def widened(x, w, u, b, hidden_bias):
    x, w, u = wide(x), wide(w), wide(u)
    n = w.shape[-1]
    return (
        x,
        w,
        u,
        np.zeros((3, n)) if b is None else wide(b),
        np.zeros(n) if hidden_bias is None else wide(hidden_bias),
    )


def gru(
    x, w, u, b=None, h0=None, reset="before", activation="tanh", activation_bias=None, hidden_bias=None, slope=0.1,
    lengths=None, reverse=False, starts=None, start_state=None,
):  # fmt: skip
    """States (T, B, n), one sequence and one step at a time."""
    x, w, u, b, hidden_bias = widened(x, w, u, b, hidden_bias)
    states = np.zeros((*x.shape[:2], w.shape[-1]))
    for s in range(x.shape[1]):
        for order, start in pieces(s, len(x) if lengths is None else lengths[s], reverse, starts):
            h = initial({"h0": h0, "start_state": start_state}[start], s, w.shape[-1])
            for t in order:
                z, *_, argument = step(h, x[t, s], w, u, b, hidden_bias, reset)
                h = states[t, s] = z * h + (1 - z) * activate(argument, activation, activation_bias, slope)
    return states


def gru_vjp(
    x, w, u, ct, b=None, h0=None, reset="before", activation="tanh", activation_bias=None, hidden_bias=None, slope=0.1,
    lengths=None, reverse=False, starts=None, start_state=None,
):  # fmt: skip
    """A dict with the gradients of x, w, u, b, h0, start_state, hidden_bias and activation_bias."""
    given = (reset, activation, activation_bias, hidden_bias, slope, lengths, reverse, starts, start_state)
    states = gru(x, w, u, b, h0, *given)
    x, w, u, b, hidden_bias = widened(x, w, u, b, hidden_bias)
    ct, n = wide(ct), w.shape[-1]
    bars = {
        name: np.zeros(a.shape) for name, a in (("x", x), ("w", w), ("u", u), ("b", b), ("hidden_bias", hidden_bias))
    }
    first = {"h0": h0, "start_state": start_state}
    first_bars = {name: np.zeros((x.shape[1], n)) for name in first}
    bars["activation_bias"] = None if activation_bias is None else np.zeros(np.shape(activation_bias))
    for s in range(x.shape[1]):
        for order, start in pieces(s, len(x) if lengths is None else lengths[s], reverse, starts):
            g = np.zeros(n)
            for k in range(len(order) - 1, -1, -1):
                t, g = order[k], g + ct[order[k], s]
                before = states[order[k - 1], s] if k else initial(first[start], s, n)
                z, r, operand, product, argument = step(before, x[t, s], w, u, b, hidden_bias, reset)
                c = activate(argument, activation, activation_bias, slope)
                c_bar, own_bar = activate_vjp(argument[None], activation, ((1 - z) * g)[None], activation_bias, slope)
                product_bar = r * c_bar[0] if reset == "after" else c_bar[0]
                operand_bar = w[2].T @ product_bar
                r_bar = product * c_bar[0] if reset == "after" else before * operand_bar
                gates = [g * (before - c) * z * (1 - z), r_bar * r * (1 - r), c_bar[0]]
                for i, gate in enumerate(gates):
                    bars["u"][i] += np.outer(gate, x[t, s])
                    bars["b"][i] += gate
                    bars["x"][t, s] += u[i].T @ gate
                for i in (0, 1):
                    bars["w"][i] += np.outer(gates[i], before)
                bars["w"][2] += np.outer(product_bar, operand)
                bars["hidden_bias"] += product_bar
                if activation_bias is not None:
                    bars["activation_bias"] += own_bar
                kept = operand_bar if reset == "after" else r * operand_bar
                g = z * g + w[0].T @ gates[0] + w[1].T @ gates[1] + kept
            first_bars[start][s] += g
    return bars | {name: of_all(bar, first[name]) for name, bar in first_bars.items()}
