"""A row of the bench: our side, the peers, a float64 reference, and the ratios to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# arrays, or tensors that NumPy can read, so that measuring needs no torch
Results = dict[str, Any]
# tolerances of the relative error against float64 for one operator
VALUE, GRADIENT = 2e-5, 2e-4


@dataclass(frozen=True)
class Candidate:
    """One side: `run` is timed; `results` gives its values and gradients (None: a different function, not
    checked)."""

    name: str
    run: Callable[[], object]
    results: Callable[[], Results] | None


@dataclass(frozen=True)
class Bar:
    """The ratio to reach against the fastest of the named peers (None: of all)."""

    label: str
    bar: float
    goal: float
    peers: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Row:
    """One comparison. `share` is (bar, goal) of the product peak, if the table has one; `flops` is 0 if there are no
    products."""

    name: str
    ours: Candidate
    peers: list[Candidate]
    reference: Callable[[], Results]
    bars: list[Bar]
    flops: float
    tolerance: tuple[float, float] = (VALUE, GRADIENT)
    share: tuple[float, float] | None = None
    plan: str = ""


@dataclass(frozen=True)
class Figure:
    """A measured number that must not exceed a bound; None if this machine cannot measure it."""

    name: str
    value: float | None
    unit: str
    bound: float | None
    facts: dict[str, float | None] = field(default_factory=dict)


def relative_error(found: Any, reference: Any) -> float:
    """||found - reference||_F / max(||reference||_F, 1e-3), infinity if a shape differs or a NaN occurs."""
    found, reference = np.asarray(found), np.asarray(reference)
    if found.shape != reference.shape:
        return float("inf")
    wide = found.astype(np.result_type(found, np.float64))
    error = float(np.linalg.norm(wide - reference)) / max(float(np.linalg.norm(reference)), 1e-3)
    return error if error == error else float("inf")


def worst(found: Results, reference: Mapping[str, Any], tolerance: tuple[float, float]) -> tuple[float, str]:
    """The largest error in units of its tolerance, and its name; above 1 the values are wrong."""
    ratios = {}
    for key, expected in reference.items():
        bound = tolerance[0] if key == "value" else tolerance[1]
        ratios[key] = relative_error(found[key], expected) / bound if key in found else float("inf")
    key = max(ratios, key=lambda k: ratios[k])
    return ratios[key], key
