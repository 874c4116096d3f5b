"""The optimisers of the papers, by name, one for each group of parameters.

torch's RMSprop starts its accumulator at 0 and adds eps outside the root; TensorFlow's, which some papers used, starts
at 1. Adagrad starts at 0.1, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

# name -> the class in torch.optim, and its keywords
ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "rmsprop": ("RMSprop", {"alpha": 0.9}),
    "adam": ("Adam", {}),
    "adagrad": ("Adagrad", {"initial_accumulator_value": 0.1}),
    "sgd": ("SGD", {}),
}


def make_optimizers(settings: Mapping[str, Any], network: nn.Module, layer: nn.Module) -> list[torch.optim.Optimizer]:
    """One optimiser for each of three groups, as far as it has parameters: the layer's phases, where these have a rate
    or an algorithm of their own; its other recurrent parameters; all the rest.
    """
    import torch

    recurrent: Iterable[nn.Parameter] = getattr(layer, "recurrent_parameters", tuple)()
    group = {id(parameter): "recurrent_" for parameter in recurrent}
    if settings["phases_lr"] is not None or settings["phases_optimizer"] is not None:
        group |= {id(p): "phases_" for name, p in layer.named_parameters() if name.startswith("phases")}
    optimizers = []
    for prefix in ("", "recurrent_", "phases_"):
        members = [p for p in network.parameters() if group.get(id(p), "") == prefix]
        lr, algorithm = settings[f"{prefix}lr"], settings[f"{prefix}optimizer"]
        name, keywords = ALGORITHMS[settings["recurrent_optimizer"] if algorithm is None else algorithm]
        if members:
            optimizer = getattr(torch.optim, name)
            optimizers.append(optimizer(members, lr=settings["recurrent_lr"] if lr is None else lr, **keywords))
    return optimizers
