"""Audio for training, validation and test: the files of a folder, or synthesised sound, at 8 kHz.

Of files with the same samples, whatever their names and formats, one counts: TIMIT is also distributed with every
recording twice, as SA1.WAV and SA1.WAV.wav. Where a copy is among the test data, that one.
"""

import hashlib
from pathlib import Path

import numpy as np

from isometry.cli.data import files
from isometry.readers import read_audio

RATE = 8000
Recording = tuple[str, np.ndarray]  # a name and samples
SHARE = 10  # one of this many is for validation, and one for test
MADE = 60  # recordings


def split(data: str | None) -> tuple[list[Recording], list[Recording], list[Recording]]:
    """Recordings to train, to validate and to test on.

    The test data are those in a folder named test (in any case), as in TIMIT; else one in ten, drawn once for all runs.
    """
    test: list[Recording] = []
    different = ""
    if data is None:
        rng = np.random.default_rng(0)
        found = [(f"recording {k}", syllables(rng)) for k in range(MADE)]
    else:
        found, test = _read(data)
        count = len(found) + len(test)
        different = " different" if count < len(paths(data)) else ""
        if count < 3:
            what = f"has {count}" if Path(data).is_dir() else "must be a folder with"
            raise ValueError(f"data {data} {what}{different} files *.wav, 3 or more are needed")
    order = np.random.default_rng(1).permutation(len(found))
    share = max(1, len(found) // SHARE)
    if not test:
        test, order = [found[k] for k in order[:share]], order[share:]
    if len(order) < 2:
        raise ValueError(f"data {data} has {len(found)}{different} files *.wav to train on, 2 or more are needed")
    return [found[k] for k in order[share:]], [found[k] for k in order[:share]], test


def paths(data: str) -> list[Path]:
    """The recordings of a folder, copies too."""
    return [path for path in files(Path(data)) if path.suffix.lower() == ".wav"]


def _read(data: str) -> tuple[list[Recording], list[Recording]]:
    """Those outside folders named test, and those inside, each once."""
    found: dict[bytes, tuple[bool, Recording]] = {}
    for path in paths(data):
        samples, rate = read_audio(path)
        content = hashlib.sha256(f"{rate} ".encode() + samples.tobytes()).digest()
        inside = "test" in (part.lower() for part in path.relative_to(data).parts[:-1])
        if content not in found or (inside and not found[content][0]):
            found[content] = inside, (str(path), resampled(samples, rate))
    outside, test = ([one for inside, one in found.values() if inside == that] for that in (False, True))
    return outside, test


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """The same sound at 8 kHz, without frequencies above 4 kHz: the spectrum is cut off, or padded with zeros."""
    if rate == RATE:
        return samples
    count = max(1, round(samples.size * RATE / rate))
    spectrum = np.fft.rfft(samples)[: count // 2 + 1]
    return np.fft.irfft(spectrum, count) * (count / samples.size)


# Resonances of the mouth in Hz for a, e, i, o, u, and how wide they are.
VOWELS = np.array([[730, 1090, 2440], [530, 1840, 2480], [270, 2290, 3010], [570, 840, 2410], [300, 870, 2240]])
WIDTHS = np.array([90.0, 110.0, 170.0])
SYLLABLE = 0.25  # seconds


def syllables(rng: np.random.Generator) -> np.ndarray:
    """About a second that resembles speech: overtones of a gliding pitch, shaped by vowels that change, and pauses."""
    count = int(rng.integers(3, 7))
    step = int(SYLLABLE * RATE)
    time = np.arange(count * step) / step  # in syllables
    points = np.arange(count + 1)
    pitch = np.interp(time, points, rng.uniform(90, 220) * np.exp2(rng.uniform(-0.25, 0.25, count + 1)))
    vowels = VOWELS[rng.integers(0, len(VOWELS), count + 1)]
    loud = np.interp(time, points, rng.uniform(0.3, 1.0, count + 1)) * np.sin(np.pi * (time % 1)) ** 0.5
    angle = 2 * np.pi * np.cumsum(pitch) / RATE
    sound = np.zeros_like(time)
    for harmonic in range(1, int(RATE / 2 / pitch.min()) + 1):  # overtones that are below half the rate at some time
        frequency = harmonic * pitch
        gain = np.zeros_like(time)
        for k, width in enumerate(WIDTHS):
            centre = np.interp(time, points, vowels[:, k])
            gain += 1 / (1 + ((frequency - centre) / width) ** 2)
        sound += gain * (frequency < RATE / 2) / harmonic * np.sin(harmonic * angle)
    sound = loud * sound + 1e-4 * rng.standard_normal(time.size)
    return sound / np.abs(sound).max()
