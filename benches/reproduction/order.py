"""Which system is better on test images: the accuracies with their intervals, by the bootstrap over the images."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from isometry.cli.compare.table import figure
from reproduction.cell import CELLS
from reproduction.results import Entry

TAIL = 0.025  # on either side of an interval
BETTER, OPEN, WORSE = "better than", "not separated from", "worse than"


def interval(accuracy: float, images: int) -> tuple[float, float]:
    """From the 2.5 % to the 97.5 % quantile of the bootstrap.

    A sample of n images drawn again has Binomial(n, p) right answers, where p is the accuracy: the quantiles are those
    of this distribution, and nothing is drawn.
    """
    right = round(accuracy * images)
    if right in (0, images):
        return right / images, right / images
    k = np.arange(images + 1)
    logs = np.array([math.lgamma(j + 1) for j in k])
    share = right / images
    chances = np.exp(logs[-1] - logs - logs[::-1] + k * math.log(share) + k[::-1] * math.log1p(-share))
    low, high = np.searchsorted(np.cumsum(chances), (TAIL, 1 - TAIL))
    return float(low / images), float(high / images)


def spread(cell: str, tests: Mapping[str, float]) -> tuple[float, float] | None:
    """The interval of an accuracy on test images; None for other tasks."""
    images, accuracy = CELLS[cell].get("images"), tests.get("accuracy", math.nan)
    return None if images is None or math.isnan(accuracy) else interval(accuracy, images)


def with_interval(cell: str, tests: Mapping[str, float], name: str) -> str:
    """A score on test data, with its interval where it has one."""
    found = spread(cell, tests) if name == "accuracy" else None
    return figure(tests[name]) if found is None else f"{tests[name]:.3f} ({found[0]:.3f} to {found[1]:.3f})"


def compared(cell: str, entry: Entry, others: Mapping[str, Entry], names: Sequence[str]) -> dict[str, str]:
    """For each of the names that has a result: better, worse, or not separated, by whether the intervals overlap."""
    own, found = spread(cell, entry.tests), {}
    for name in names:
        other = spread(cell, others[name].tests) if name in others else None
        if own is not None and other is not None:
            found[name] = BETTER if own[0] > other[1] else WORSE if own[1] < other[0] else OPEN
    return found
