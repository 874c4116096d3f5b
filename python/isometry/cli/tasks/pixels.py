"""Pixels: images of MNIST, or of any set in its files, read pixel by pixel; `--data` names their folder.

    train-images-idx3-ubyte  train-labels-idx1-ubyte  t10k-images-idx3-ubyte  t10k-labels-idx1-ubyte

also with "." in place of the last "-" but one, or with .gz. The last twelfth of the training images, 5,000 of MNIST's
60,000, is for validation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isometry.cli.tasks.images import Images, Part
from isometry.readers import read_idx

KINDS = {"images": 3, "labels": 1}  # a file of each, and its number of axes
VALIDATION = 12  # one of this many images is for validation


class Pixels(Images):
    title = "Images, pixel by pixel"

    def __init__(self, *, data: str, batch: int) -> None:
        whole, test = (_part(Path(data), name) for name in ("train", "t10k"))
        if whole[0].shape[1:] != test[0].shape[1:]:
            raise ValueError(
                f"data {data}: images of {whole[0].shape[1:]} pixels to train on, {test[0].shape[1:]} to test"
            )
        count = len(whole[1])
        cut = count - count // VALIDATION
        if cut == count:
            raise ValueError(f"data {data}: {count} images to train on, expected {VALIDATION} or more")
        training, validation = ((whole[0][part], whole[1][part]) for part in (slice(cut), slice(cut, None)))
        order = self.order(whole[0][0].size)
        super().__init__(training, validation, test, batch=batch, permutation=order)

    def order(self, _pixels: int) -> np.ndarray | None:
        """The order of the pixels; None: row by row."""
        return None


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
    names = [f"{name}{dot}idx{axes}-ubyte{ending}" for dot in "-." for ending in ("", ".gz")]
    found = next((path for path in map(folder.joinpath, names) if path.exists()), None)
    if found is None:
        what = "has" if folder.is_dir() else "must be a folder with"
        raise ValueError(f"data {folder} {what} {'no ' if what == 'has' else ''}{names[0]} or {names[1]}")
    return found
