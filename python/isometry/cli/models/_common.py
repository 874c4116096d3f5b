"""Keywords common to all layers, and the papers' additional initial values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

SHARED: dict[str, Any] = {"num_layers": 1, "bias": True, "dropout": 0.0}


def spread_initial_state(layer: nn.Module, bound: float) -> None:
    """Initialise a trained h0 uniformly on +-bound (no effect without one)."""
    import torch

    for name, parameter in layer.named_parameters():
        if name.startswith("h0"):
            torch.nn.init.uniform_(parameter, -bound, bound)


def ornn_bound(hidden: int) -> float:
    """sqrt(3 / (2 n)), the bound of the oRNN's initial state."""
    return math.sqrt(3 / (2 * hidden))
