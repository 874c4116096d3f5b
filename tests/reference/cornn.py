"""The coupled oscillatory network, by Rusch and Mishra's equation 3."""

import numpy as np

from reference.numbers import wide
from reference.recurrence import over_time


def cornn(x, w, u, b=None, *, dt, gamma, epsilon, y0=None, z0=None, **options):
    """y and z of every step side by side, (T, B, 2n)."""
    x, w, u = wide(x), wide(w), wide(u)
    b = np.zeros(len(u)) if b is None else wide(b)

    def step(x, y, z):
        z = z + dt * (np.tanh(w[0] @ y + w[1] @ z + u @ x + b) - gamma * y - epsilon * z)
        return y + dt * z, z

    return over_time(step, x, len(u), (y0, z0), **options)
