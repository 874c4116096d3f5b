"""Tasks and measures of sequences: their definitions, units, precisions, what is refused."""

import itertools

import numpy as np
import pytest

import isometry as iso
from registry import DTYPES
from tolerance import TIGHT, close

NMSE, MASKED = iso.metrics.nmse, iso.metrics.masked_mse


def drawn():
    """A generator like that of the calls below, which have this seed."""
    return np.random.default_rng(3)


def same(found, *expected):
    for one, two in zip(found, expected, strict=True):
        assert one.dtype == two.dtype and np.array_equal(one, two)


@pytest.mark.parametrize("steps", [3, 8])
@pytest.mark.parametrize("variant", ["halves", "half_open"])
def test_adding(steps, variant):
    """Uniform numbers, of which one in each half is marked; the sum of the two."""
    rng, columns = drawn(), np.arange(4)
    first, half = (0, steps // 2) if variant == "halves" else (1, (steps + 1) // 2)
    values, marks = rng.random((steps, 4)), np.zeros((steps, 4))
    marks[rng.integers(first, half, 4), columns] = 1
    marks[rng.integers(half, steps, 4), columns] = 1
    expected = np.stack([values, marks], -1), (values * marks).sum(0)[:, None]
    same(iso.tasks.adding(steps, 4, 3, variant=variant), *expected)
    same(iso.tasks.adding(steps, 4, drawn(), variant=variant), *expected)


@pytest.mark.parametrize("offset", [0, 1])
def test_copying(offset):
    """Ten digits, blanks with a marker among them, and the digits again."""
    digits, after, before = drawn().integers(1, 9, (10, 4)), np.zeros((17, 4), int), np.zeros((17, 4), int)
    after[7 - offset] = 9
    expected = np.concatenate([digits, after]), np.concatenate([before, digits])
    same(iso.tasks.copying(7, 4, 3, marker_offset=offset), *expected)


@pytest.mark.parametrize("group", ["S2", "S3", "S4", "S5"])
def test_permutations(group):
    """The product of all elements so far."""
    elements = list(itertools.permutations(range(int(group[1]))))
    ids, products = drawn().integers(0, len(elements), (6, 3)), np.zeros((6, 3), int)
    for b in range(3):
        product = elements[0]
        for t in range(6):
            product = tuple(elements[ids[t, b]][i] for i in product)
            products[t, b] = elements.index(product)
    same(iso.tasks.permutations(6, 3, 3, group=group), ids, products)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.int16])
def test_integers_as_vectors_and_targets(kind, seed):
    ids = seed.integers(0, 5, (6, 3)).astype(kind)
    same([iso.tasks.one_hot(ids, 5)], np.eye(5)[ids])
    same(iso.tasks.characters(ids, 2, 5), np.eye(5)[ids[:-2]], ids[2:].astype(np.int64))


@pytest.mark.parametrize("kind", [np.uint8, *DTYPES[:2]])
def test_pixels_one_by_one(kind, seed):
    images, order = seed.integers(0, 256, (3, 4, 2)).astype(kind), seed.permutation(8)
    flat = images.reshape(3, 8).T[..., None].astype(float) / 255
    close(iso.tasks.pixels(images), flat, TIGHT)
    close(iso.tasks.pixels(images, permutation=order), flat[order], TIGHT)


def sines(f, a, psi, length, rate):
    y = np.sin(2 * np.pi * np.outer(np.arange(length), f) / rate + psi) @ a
    return (y / np.abs(y).max())[:, None, None]


def test_waveforms(seed):
    """Sums of sines whose largest sample is 1; of drawn overtones."""
    f, a, psi = seed.standard_normal((3, 4))
    close(iso.tasks.waveform(f, a, psi, length=9, rate=7.5), sines(f, a, psi, 9, 7.5), 1e-13)
    rng, given = drawn(), {"length": 9, "rate": 900.0, "partials": 3}
    f, a, psi = rng.uniform(60, 400), rng.uniform(0.2, 1, 3), rng.uniform(-np.pi, np.pi, 3)
    close(iso.tasks.random_waveform(3, **given), sines(f * np.arange(1, 4), a, psi, 9, 900.0), 1e-12)


def test_spectrogram(seed):
    """Logarithms of the power of Hann windows."""
    audio, j = seed.standard_normal(23), np.arange(8)
    dft = np.exp(-2j * np.pi * np.outer(np.arange(5), j) / 8) * np.sin(np.pi * j / 8) ** 2
    frames = np.array([audio[k : k + 8] for k in range(0, 16, 3)])
    expected = 0.5 * np.log(np.abs(frames @ dft.T) ** 2 + 0.1)
    close(iso.tasks.spectrogram(audio, window=8, hop=3, scale=0.5, floor=0.1), expected, 1e-13)


def test_errors(seed):
    """Of all entries relative to the variance or the power of the target; of the entries within each sequence."""
    o, y = seed.standard_normal((2, 4, 3, 2))
    square = np.square(o - y)
    close(NMSE(o, y), square.mean() / y.var(), TIGHT)
    close(NMSE(o, y, normaliser="power"), square.mean() / np.square(y).mean(), TIGHT)
    within = square[:4, 0].sum() + square[:1, 1].sum() + square[:2, 2].sum()
    close(MASKED(o, y, [4, 1, 2]), within / (2 * 7), TIGHT)


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
