"""Circulant: what no law checks, such as edge sizes and identities."""

import numpy as np

import isometry as iso
from tolerance import TIGHT, close


def test_a_linear_phase_is_a_shift():
    n, shift = 6, 2
    phases = -2 * np.pi * shift * np.arange(n) / n
    close(iso.Circulant(phases).apply(np.arange(n) + 0j), np.roll(np.arange(n), shift), TIGHT)
