"""What a row of the bench is: our side, the peers, a float64 reference, and what counts as enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

Results = dict[str, Tensor]
# tolerances of the relative error against float64 for one operator (specification, section 2)
VALUE, GRADIENT = 2e-5, 2e-4


@dataclass(frozen=True)
class Candidate:
    """One side: `run` is timed; `results` gives its values and gradients (None: another function, nothing to check)."""

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
    """One comparison. `share` is (bar, goal) of the product peak, where the table has one."""

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
    """A measured number that must not exceed a bound; None where this machine cannot measure it."""

    name: str
    value: float | None
    unit: str
    bound: float | None
    facts: dict[str, float | None] = field(default_factory=dict)


def differentiable(
    name: str,
    leaves: Mapping[str, Tensor],
    forward: Callable[[], Tensor],
    cotangent: Tensor,
    pick: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
) -> Candidate:
    """A candidate from its forward: loss sum(y * cotangent), gradients of the leaves.

    `pick` brings a leaf's gradient into the form in which the sides of a row are compared.
    """

    def run() -> Tensor:
        for leaf in leaves.values():
            leaf.grad = None
        value = forward()
        (value * cotangent).sum().backward()
        return value

    def results() -> Results:
        found = {"value": run().detach()}
        for key, leaf in leaves.items():
            assert leaf.grad is not None
            found[f"gradient of {key}"] = pick[key](leaf.grad) if pick and key in pick else leaf.grad
        return found

    return Candidate(name, run, results)


def relative_error(found: Tensor, reference: Tensor) -> float:
    """||found - reference||_F / max(||reference||_F, 1e-3), infinity if a shape differs or a NaN occurs."""
    if found.shape != reference.shape:
        return float("inf")
    wide = found.detach().double() if not found.is_complex() else found.detach().to(torch.complex128)
    error = float((wide - reference).norm() / max(float(reference.norm()), 1e-3))
    return error if error == error else float("inf")


def worst(found: Results, reference: Results, tolerance: tuple[float, float]) -> tuple[float, str]:
    """The largest error in units of its tolerance, and where; above 1 the values are wrong."""
    ratios = {}
    for key, expected in reference.items():
        bound = tolerance[0] if key == "value" else tolerance[1]
        ratios[key] = relative_error(found[key], expected) / bound if key in found else float("inf")
    key = max(ratios, key=lambda k: ratios[k])
    return ratios[key], key
