"""Characters, permutations, waveforms, spectrograms and the measures of sequences, from their definitions."""

import itertools

import numpy as np
import pytest

import isometry as iso
from tolerance import TIGHT, close, forward

NMSE, MASKED = iso.metrics.nmse, iso.metrics.masked_mse


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_characters(seed, k, dtype):
    ids = seed.integers(0, 4, (6, 3)).astype(dtype)
    x, y = iso.tasks.characters(ids, k, 7)
    assert x.shape == (6 - k, 3, 7) and y.dtype == np.int64
    for t in range(6 - k):
        assert np.array_equal(x[t].argmax(-1), ids[t]) and np.array_equal(y[t], ids[t + k])
    assert x.sum() == x[x > 0].size == 3 * (6 - k)


@pytest.mark.parametrize(("group", "n"), [("S2", 2), ("S3", 3), ("S4", 4), ("S5", 5)])
def test_permutations(group, n):
    """Every product is that of the matrices so far, the last one on the left."""
    ids, products = iso.tasks.permutations(7, 3, 0, group=group)
    elements = np.array(list(itertools.permutations(range(n))))
    assert np.array_equal(ids, np.random.default_rng(0).integers(0, len(elements), (7, 3)))
    matrices, product = np.eye(n)[:, elements].swapaxes(0, 1), np.eye(n)  # column i of the k-th is e of p_k(i)
    for t in range(7):
        product = matrices[ids[t]] @ product
        assert np.array_equal(product, matrices[products[t]])


def test_waveform_is_a_sum_of_sines(seed):
    f, a, psi = seed.uniform(100, 900, 3), seed.uniform(-1, 1, 3), seed.uniform(-4, 4, 3)
    y = np.array([sum(a * np.sin(2 * np.pi * f * t / 8000 + psi)) for t in range(50)])
    found = iso.tasks.waveform(f, a, psi, length=50, rate=8000)
    assert found.shape == (50, 1, 1)
    close(found[:, 0, 0], y / np.abs(y).max(), TIGHT)
    one = iso.tasks.random_waveform(3, length=9, rate=50, partials=1)
    rng = np.random.default_rng(3)
    close(
        one,
        iso.tasks.waveform(
            [rng.uniform(60, 400)], rng.uniform(0.2, 1, 1), rng.uniform(-np.pi, np.pi, 1), length=9, rate=50
        ),
        TIGHT,
    )


@pytest.mark.parametrize(("window", "hop"), [(2, 1), (8, 3), (10, 25)])
def test_spectrogram_is_the_transform_of_windows(seed, window, hop):
    audio = seed.standard_normal(47)
    j = np.arange(window)
    frames = [
        audio[k : k + window] * (0.5 - 0.5 * np.cos(2 * np.pi * j / window)) for k in range(0, 47 - window + 1, hop)
    ]
    dft = np.exp(-2j * np.pi * np.outer(np.arange(window // 2 + 1), j) / window)
    expected = 3.0 * np.log(np.abs(np.array(frames) @ dft.T) ** 2 + 0.1)
    close(iso.tasks.spectrogram(audio, window=window, hop=hop, scale=3.0, floor=0.1), expected, forward(float, window))


def test_measures(seed):
    o, y = seed.standard_normal((2, 4, 3, 2))
    close(NMSE(o, y), ((o - y) ** 2).sum() / ((y - y.mean()) ** 2).sum(), TIGHT)
    close(NMSE(o, y, normaliser="power"), ((o - y) ** 2).sum() / (y**2).sum(), TIGHT)
    assert NMSE(y, y) == 0 == MASKED(y, y, [4, 4, 4])
    lengths = np.array([4, 1, 2], np.uint8)
    errors = [((o - y)[: lengths[b], b] ** 2).sum() for b in range(3)]
    close(MASKED(o, y, lengths), sum(errors) / (2 * 7), TIGHT)
    close(
        MASKED(o[..., 0], y[..., 0], lengths),
        sum(((o - y)[: lengths[b], b, 0] ** 2).sum() for b in range(3)) / 7,
        TIGHT,
    )


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
