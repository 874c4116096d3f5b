"""Rotations of one direction to another."""

import numpy as np

from reference.numbers import wide


def unit(v):
    return wide(v) / np.linalg.norm(wide(v), axis=-1, keepdims=True)


def turned(start, end):
    """Unit vectors a and b, K = b a^T - a b^T, 1 + <a, b>."""
    a, b = unit(start), unit(end)
    return a, b, np.outer(b, a) - np.outer(a, b), (a + b) @ (a + b) / 2


QUARTER = np.array([[0.0, -1.0], [1.0, 0.0]])


def plane(start, end):
    """The rotation for n = 2, cos + sin J, also for directions that are nearly opposite, where 1 + c cancels."""
    a, b, k, _ = turned(start, end)
    return a @ b * np.eye(2) + k[1, 0] * QUARTER


def rotation(start, end):
    """R = I + K + K^2 / (1 + c): not for opposite directions, nor for zero vectors."""
    a, _, k, more = turned(start, end)
    if len(a) == 2:
        return plane(start, end)
    return np.eye(len(a)) + (k + k @ k / more if len(a) > 1 else 0)


def rotation_vjp(w_bar, start, end):
    """The product rule for K and c, then for a and b, then for their lengths."""
    a, b, k, more = turned(start, end)
    if len(a) == 1:
        return {"start": np.zeros(1), "end": np.zeros(1)}
    g = wide(w_bar).real
    if len(a) == 2:
        slope = np.sum(g * (QUARTER @ plane(start, end)))
        a_bar, b_bar = -slope * QUARTER @ a, slope * QUARTER @ b
        return {"start": a_bar / np.linalg.norm(wide(start)), "end": b_bar / np.linalg.norm(wide(end))}
    k_bar = g + (g @ k.T + k.T @ g) / more
    c_bar = -np.sum(g * (k @ k)) / more**2
    a_bar, b_bar = (k_bar.T - k_bar) @ b + c_bar * b, (k_bar - k_bar.T) @ a + c_bar * a
    return {
        "start": (a_bar - a * (a @ a_bar)) / np.linalg.norm(wide(start)),
        "end": (b_bar - b * (b @ b_bar)) / np.linalg.norm(wide(end)),
    }
