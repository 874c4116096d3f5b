"""Next-frame prediction: the logarithmic spectrum of windows of audio."""

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, all_finite, taken_real
from isometry._rules import check, check_tasks

DECIBELS = 10 / np.log(10)


def spectrogram(
    audio: ArrayLike,
    *,
    window: int = 256,
    hop: int = 128,
    scale: float = DECIBELS,
    floor: float = 1e-5,
    check_finite: bool = True,
) -> Array:
    """Return the logarithmic power spectrum of windows of audio.

    scale ln(abs(X)^2 + floor), X the discrete Fourier transform of each window times the periodic Hann window
    0.5 - 0.5 cos(2 pi j / window); nothing is padded. The task is to predict a frame from those before it.

    Parameters
    ----------
    audio
        Samples, shape (N,), N >= window.
    window
        The number of samples of a window, even.
    hop
        The number of samples from one window to the next, at least 1.
    scale
        10 / ln 10: decibels. 0.5 gives ln abs(X).
    floor
        Above 0.
    check_finite
        Reject NaN and infinity in audio.

    Returns
    -------
    numpy.ndarray
        float64, shape (1 + floor((N - window) / hop), window / 2 + 1).

    Raises
    ------
    ValueError
        If audio is shorter than a window or has several axes, or a number is out of range.
    TypeError
        If audio is not real, or an argument of another kind.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> tone = np.cos(2 * np.pi * 12 * np.arange(512) / 64)
    >>> iso.tasks.spectrogram(tone, window=64, hop=16).argmax(1)[:3]
    array([12, 12, 12])
    """
    audio = taken_real("audio", audio)
    check_tasks.vector("audio", audio.shape, "(N,)")
    window, hop = check_tasks.even("window", window), check.count("hop", hop, 1)
    scale, floor = check_tasks.positive("scale", scale), check_tasks.positive("floor", floor)
    check_tasks.enough(audio.size, window)
    all_finite(check_finite, audio=audio)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    frames = np.lib.stride_tricks.sliding_window_view(audio.astype(np.float64), window)[::hop]
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.fft.rfft(frames * hann)
        feature: Array = scale * np.log(x.real**2 + x.imag**2 + floor)
    return feature
