"""Circulant: what no law checks, such as edge sizes and identities."""

import numpy as np
import pytest

import isometry as iso
import reference as ref
from tolerance import TIGHT, close


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_every_column_is_the_one_before_shifted(seed, n):
    w = iso.Circulant(ref.normal(seed, n)).matrix()
    close(np.roll(w, 1, (0, 1)), w, TIGHT)


def test_a_linear_phase_is_a_shift():
    n, shift = 6, 2
    phases = -2 * np.pi * shift * np.arange(n) / n
    close(iso.Circulant(phases).apply(np.arange(n) + 0j), np.roll(np.arange(n), shift), TIGHT)


def test_circulant_matrices_commute(seed):
    a, b = (iso.Circulant(ref.normal(seed, 7)) for _ in range(2))
    both = iso.Circulant(a.phases + b.phases).matrix()
    close(a.matrix() @ b.matrix(), both, TIGHT)
    close(b.matrix() @ a.matrix(), both, TIGHT)
