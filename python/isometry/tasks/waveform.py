"""Sequence generation: a sum of sines."""

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, taken_real
from isometry._rules import check, check_tasks
from isometry.operators._random import Seed, generator

LENGTH, RATE, PARTIALS = 800, 44100, 5


def waveform(
    frequencies: ArrayLike,
    amplitudes: ArrayLike,
    phases: ArrayLike,
    *,
    length: int = LENGTH,
    rate: float = RATE,
    check_finite: bool = True,
) -> Array:
    """Return a sum of sines, the target of sequence generation.

    y_t = sum_k amplitudes[k] sin(2 pi frequencies[k] t / rate + phases[k]), divided by max |y|. The input of the task
    is zero; its score is `isometry.metrics.nmse`, which is 1 for the mean of y.

    Parameters
    ----------
    frequencies, amplitudes, phases
        In Hz, in any unit, in radians; shape (K,), K >= 1.
    length
        L, the number of samples, at least 1.
    rate
        Samples per second, above 0.
    check_finite
        Reject NaN and infinity.

    Returns
    -------
    numpy.ndarray
        float64, shape (L, 1, 1).

    Raises
    ------
    ValueError
        If the shapes differ, length or rate is out of range, or y is zero everywhere.
    TypeError
        If an array is not real, or an argument of another kind.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.tasks.waveform([1.0], [2.0], [0.0], length=4, rate=4)[:, 0, 0].round(12) + 0
    array([ 0.,  1.,  0., -1.])
    """
    given = {"frequencies": frequencies, "amplitudes": amplitudes, "phases": phases}
    arrays = {name: taken_real(name, value) for name, value in given.items()}
    check_tasks.vector("frequencies", arrays["frequencies"].shape, "(K,)")
    for name, array in arrays.items():
        check.exact(name, array.shape, arrays["frequencies"].shape, "(K,)")
    all_finite(check_finite, **arrays)
    length = check.count("length", length, 1)
    rate = check_tasks.positive("rate", rate)
    f, a, psi = (array.astype(np.float64) for array in arrays.values())
    y = np.zeros(length)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(f.size):
            y += a[k] * np.sin(2 * np.pi * f[k] / rate * np.arange(length) + psi[k])
        largest = np.abs(y).max()
        if largest == 0:
            check_tasks.silent("amplitudes")
        scaled: Array = (y / largest)[:, None, None]
    return scaled


def random_waveform(rng: Seed, *, length: int = LENGTH, rate: float = RATE, partials: int = PARTIALS) -> Array:
    """Draw a `waveform`: a tone and its overtones, with random amplitudes and phases.

    Parameters
    ----------
    rng
        A `numpy.random.Generator`, or a seed. Draws in this order: f_1 = ``uniform(60, 400)``, the amplitudes
        ``uniform(0.2, 1, K)``, the phases ``uniform(-pi, pi, K)``; f_k = k f_1.
    length, rate
        As in `waveform`.
    partials
        K, at least 1.

    Returns
    -------
    numpy.ndarray
        float64, shape (L, 1, 1).

    Raises
    ------
    ValueError
        If length, rate or partials is out of range.
    TypeError
        If an argument is of another kind.

    Examples
    --------
    >>> import isometry as iso
    >>> y = iso.tasks.random_waveform(0)
    >>> y.shape, float(abs(y).max())
    ((800, 1, 1), 1.0)
    """
    partials = check.count("partials", partials, 1)
    rng = generator(rng)
    base = rng.uniform(60, 400)
    amplitudes, phases = rng.uniform(0.2, 1, partials), rng.uniform(-np.pi, np.pi, partials)
    return waveform(base * np.arange(1, partials + 1), amplitudes, phases, length=length, rate=rate)
