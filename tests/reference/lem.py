"""The long expressive memory, by equation 3 of Rusch, Mishra, Erichson and Mahoney."""

import numpy as np

from reference.gru import sigmoid
from reference.numbers import wide
from reference.recurrence import over_time


def lem(x, w, u, b=None, *, dt=1.0, y0=None, z0=None, **options):
    """y and z of every step side by side, (T, B, 2n)."""
    x, w, u = wide(x), wide(w), wide(u)
    b = np.zeros(u.shape[:2]) if b is None else wide(b)

    def step(x, y, z):
        of_z, of_y, inner = w[:3] @ y + u[:3] @ x + b[:3]
        of_z, of_y = dt * sigmoid(of_z), dt * sigmoid(of_y)
        z = (1 - of_z) * z + of_z * np.tanh(inner)
        return (1 - of_y) * y + of_y * np.tanh(w[3] @ z + u[3] @ x + b[3]), z

    return over_time(step, x, w.shape[-1], (y0, z0), **options)
