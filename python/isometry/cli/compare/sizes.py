"""The hidden size that gives a network a number of parameters, as the papers compare their models.

Entries of a parameter that W does not depend on do not count: those above the diagonal of a trapezoid of reflections.
Of a W that is itself a parameter, kept orthogonal or unitary by its optimiser, the dimension of the group counts.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from isometry.cli.build import blamed, make_layer
from isometry.cli.errors import UsageError
from isometry.cli.network import Network, recurrent_matrices
from isometry.cli.optim import OF_MATRICES
from isometry.cli.settings import Settings


def network_of(settings: Settings, task: Any) -> Network:
    """The network that a run with these settings would train; torch's generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        layer = make_layer(settings, task.inputs)
        with blamed(settings, settings.where("model")):
            return Network(layer, task.inputs, task.outputs, last_only=getattr(task, "last_only", False))


def count(network: Network, settings: Settings) -> int:
    """The number of trained real parameters, as the papers count them."""
    total = sum(p.numel() for p in network.parameters() if p.requires_grad)
    if settings["recurrent_optimizer"] not in OF_MATRICES:
        return total - _idle(network.layer)
    matrices: list[nn.Parameter] = list(network.layer.recurrent_parameters())  # type: ignore[operator]
    paired = getattr(
        network.layer, "is_complex", False
    )  # (n, n, 2) for the n^2 parameters of U(n), else (n, n) for those of O(n)
    return total - sum(w.numel() // 2 if paired else (w.numel() + w.shape[-1]) // 2 for w in matrices)


def _idle(layer: nn.Module) -> int:
    """The entries of recurrent parameters in which the derivative of a random linear function of W is exactly zero."""
    generator = torch.Generator().manual_seed(0)
    matrices = recurrent_matrices(layer)
    weights = [torch.randn(w.shape, generator=generator, dtype=w.dtype) for w in matrices]
    total = sum((w * v).sum().real for w, v in zip(matrices, weights, strict=True))
    if not isinstance(total, Tensor) or not total.requires_grad:
        return 0
    parameters: list[nn.Parameter] = [p for p in layer.recurrent_parameters() if p.requires_grad]  # type: ignore[operator]
    gradients = torch.autograd.grad(total, parameters, allow_unused=True) if parameters else ()
    return sum(int((g == 0).sum()) for g in gradients if g is not None and g.any())


def solve(target: int, counted: Callable[[int], int]) -> int:
    """The hidden size n whose `counted(n)`, a growing function, is nearest to the target.

    `counted` raises UsageError for a size that the model refuses, such as an odd one; others are then tried.
    """
    known: dict[int, int | UsageError] = {}

    def found(n: int) -> int | UsageError:
        if n not in known:
            try:
                known[n] = counted(n)
            except UsageError as error:
                known[n] = error
        return known[n]

    def from_size(n: int) -> tuple[int, int]:
        """The first size from n on that the model takes, and its count."""
        for k in range(n, 2 * n + 8):
            if isinstance(value := found(k), int):
                return k, value
        raise known[n]  # type: ignore[misc]

    low, high = 0, from_size(1)
    while high[1] < target:
        if high[0] > target:  # a unit has at least one parameter
            raise UsageError(f"--parameters: {high[0]:,} units have {high[1]:,} parameters, not {target:,}")
        low, high = high[0], from_size(2 * high[0])
    top = high[0]
    while top - low > 1:  # the count at low is below the target, that of the first size from top on is not
        middle = (low + top) // 2
        k, value = from_size(middle)
        if value < target:
            low = k
        else:
            top = middle
    high = from_size(top)
    below = found(low) if low else None
    if isinstance(below, int) and target - below <= high[1] - target:
        return low
    return high[0]
