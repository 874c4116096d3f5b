"""The torch side: a candidate from its forward, by autograd, and the reference product of all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from isometry.cli.bench.measure import PEAK_SIZE, Frame
from isometry.cli.bench.row import Candidate, Results


def frame() -> Frame:
    a = torch.randn(PEAK_SIZE, PEAK_SIZE)
    return Frame("torch.mm", lambda: a @ a)


def differentiable(
    name: str,
    leaves: Mapping[str, Tensor],
    forward: Callable[[], Tensor],
    cotangent: Tensor,
    pick: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
) -> Candidate:
    """A candidate from its forward: y, and the gradients of the leaves from that of y, conj(cotangent).

    These are the gradients of the loss Re sum(y * cotangent); the loss itself is not computed, and so not timed.

    `pick` converts a leaf's gradient to the form in which the sides of a row are compared.
    """
    bar = cotangent.conj().resolve_conj()

    def run() -> Tensor:
        for leaf in leaves.values():
            leaf.grad = None
        value = forward()
        value.backward(bar)
        return value

    def results() -> Results:
        found = {"value": run().detach()}
        for key, leaf in leaves.items():
            assert leaf.grad is not None
            found[f"gradient of {key}"] = pick[key](leaf.grad) if pick and key in pick else leaf.grad
        return found

    return Candidate(name, run, results)
