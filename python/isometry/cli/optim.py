"""The optimisers of the papers, by name, one per group of parameters.

torch's RMSprop with alpha 0.9 starts its accumulator at 0 and adds eps outside the root; TensorFlow's, used in some
papers, starts at 1. Adagrad starts at 0.1, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

    from isometry.cli.settings import Settings


def _rmsprop(parameters: list, lr: float) -> torch.optim.Optimizer:
    import torch

    return torch.optim.RMSprop(parameters, lr=lr, alpha=0.9)


def _adam(parameters: list, lr: float) -> torch.optim.Optimizer:
    import torch

    return torch.optim.Adam(parameters, lr=lr)


def _adagrad(parameters: list, lr: float) -> torch.optim.Optimizer:
    import torch

    return torch.optim.Adagrad(parameters, lr=lr, initial_accumulator_value=0.1)


def _sgd(parameters: list, lr: float) -> torch.optim.Optimizer:
    import torch

    return torch.optim.SGD(parameters, lr=lr)


ALGORITHMS: dict[str, Callable[[list, float], Any]] = {
    "rmsprop": _rmsprop,
    "adam": _adam,
    "adagrad": _adagrad,
    "sgd": _sgd,
}


def make_optimizers(
    settings: Settings, parameters: Iterable[nn.Parameter], groups: dict[str, list[nn.Parameter]]
) -> list[torch.optim.Optimizer]:
    """One optimiser for the parameters outside the groups, then one for each non-empty group."""
    grouped = {id(p) for members in groups.values() for p in members}
    main = [p for p in parameters if id(p) not in grouped]
    optimizers = [ALGORITHMS[settings.training["optimizer"]](main, settings.lr)]
    for name, members in groups.items():
        if members:
            lr = settings.recurrent_lr if name == "recurrent" else settings.training[f"{name}_lr"]
            optimizers.append(ALGORITHMS[settings.training[f"{name}_optimizer"]](members, lr))
    return optimizers
