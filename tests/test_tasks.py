"""Tasks and measures of sequences: units, precisions, what is refused. The fuzz has their definitions."""

import numpy as np
import pytest

import isometry as iso
from tolerance import TIGHT, close

NMSE, MASKED = iso.metrics.nmse, iso.metrics.masked_mse


def test_no_error_and_one_feature(seed):
    o, y = seed.standard_normal((2, 4, 3, 1))
    assert NMSE(y, y) == 0 == MASKED(y, y, [4, 4, 4])
    close(MASKED(o[..., 0], y[..., 0], [4, 1, 2]), MASKED(o, y, [4, 1, 2]), TIGHT)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e200])
def test_nmse_does_not_depend_on_the_unit(seed, size):
    """Squares of the entries would overflow or vanish."""
    o, y = seed.standard_normal((2, 9))
    for normaliser in ("variance", "power"):
        close(NMSE(size * o, size * y, normaliser=normaliser), NMSE(o, y, normaliser=normaliser), 1e-12)


def test_integers_and_single_precision(seed):
    """Results are in double precision whatever comes."""
    o, y = seed.integers(0, 9, (2, 5, 3))
    for value in (NMSE(o, y), MASKED(o.astype(np.float32), y, [5, 1, 2])):
        assert value.dtype == np.float64
    assert iso.tasks.spectrogram(np.arange(300, dtype=np.float32)).dtype == np.float64


WRONG = {
    "ids of one axis": (lambda: iso.tasks.characters([0, 1], 1, 2), r"ids must have shape \(S, B\)"),
    "ids of one step": (lambda: iso.tasks.characters([[0]], 1, 2), "ids must have at least 2 steps"),
    "no partials": (lambda: iso.tasks.waveform([], [], []), r"frequencies must have shape \(K,\)"),
    "a matrix of partials": (lambda: iso.tasks.waveform([[1.0]], [[1.0]], [[1.0]]), "frequencies must have shape"),
    "too few phases": (lambda: iso.tasks.waveform([1.0, 2.0], [1.0, 1.0], [0.0]), r"phases must have shape \(K,\)"),
    "silence": (lambda: iso.tasks.waveform([1.0], [0.0], [0.5]), "amplitudes must give a waveform"),
    "rate of nothing": (lambda: iso.tasks.waveform([1.0], [1.0], [0.5], rate=0), "rate must be a finite number"),
    "infinite rate": (lambda: iso.tasks.waveform([1.0], [1.0], [0.5], rate=np.inf), "rate must be a finite number"),
    "infinite frequency": (lambda: iso.tasks.waveform([np.inf], [1.0], [0.5]), "frequencies"),
    "no audio": (lambda: iso.tasks.spectrogram([]), r"audio must have shape \(N,\)"),
    "shapes that broadcast": (lambda: NMSE(np.ones((3, 1)), np.ones(3)), "output must have the shape of target"),
    "nothing to measure": (lambda: NMSE([], []), "target must have at least one entry"),
    "one axis": (lambda: MASKED([1.0], [2.0], [1]), r"target must have shape \(T, B, ...\)"),
    "lengths of another batch": (lambda: MASKED(np.ones((2, 2)), np.ones((2, 2)), [2]), "lengths must have shape"),
    "NaN behind the end": (lambda: MASKED([[1.0], [np.nan]], [[1.0], [1.0]], [1]), "output"),
    "constant target": (lambda: NMSE(np.ones(9), np.full(9, 0.1)), "its variance is 0"),
    "no target": (lambda: NMSE(np.ones(9), np.zeros(9), normaliser="power"), "its power is 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name):
    call, said = WRONG[name]
    with pytest.raises(ValueError, match=said):
        call()


def test_what_is_not_finite_passes_if_asked(seed):
    """Behind the end of a sequence it does not count."""
    o, y = seed.standard_normal((2, 3, 2, 1))
    spoilt = o.copy()
    spoilt[2, 1] = np.nan
    assert MASKED(spoilt, y, [3, 2], check_finite=False) == MASKED(o, y, [3, 2])
    assert np.isnan(NMSE(spoilt, y, check_finite=False))
