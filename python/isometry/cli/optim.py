"""The optimisers of the papers, by name, one for each group of parameters.

torch's RMSprop starts its accumulator at 0 and adds eps outside the root; TensorFlow's, which some papers used, starts
at 1. Adagrad starts at 0.1, as in TensorFlow.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

# name -> module and class, and its keywords
ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "rmsprop": ("torch.optim:RMSprop", {"alpha": 0.9}),
    "adam": ("torch.optim:Adam", {}),
    "adagrad": ("torch.optim:Adagrad", {"initial_accumulator_value": 0.1}),
    "sgd": ("torch.optim:SGD", {}),
}
#: Optimisers for a W that is itself a parameter; they keep it unitary.
OF_MATRICES: dict[str, tuple[str, dict[str, Any]]] = {
    "cayley-sgd": ("isometry.torch.optim:CayleySGD", {"reorthogonalize": True}),
    "cayley-rmsprop": ("isometry.torch.optim:CayleyRMSprop", {"reorthogonalize": True}),
}


def make_optimizers(settings: Mapping[str, Any], network: nn.Module, layer: nn.Module) -> list[torch.optim.Optimizer]:
    """One optimiser for each of three groups that is not empty: the layer's phases, if these have a rate or an
    algorithm of their own; its other recurrent parameters; all the rest.
    """
    recurrent: Iterable[nn.Parameter] = getattr(layer, "recurrent_parameters", tuple)()
    group = {id(parameter): "recurrent_" for parameter in recurrent}
    if settings["phases_lr"] is not None or settings["phases_optimizer"] is not None:
        group |= {id(p): "phases_" for name, p in layer.named_parameters() if name.startswith("phases")}
    optimizers = []
    for prefix in ("", "recurrent_", "phases_"):
        members = [p for p in network.parameters() if group.get(id(p), "") == prefix]
        lr, algorithm = settings[f"{prefix}lr"], settings[f"{prefix}optimizer"]
        algorithm = algorithm or settings["recurrent_optimizer"]
        path, keywords = (ALGORITHMS | OF_MATRICES)[algorithm]
        if members:
            if algorithm in OF_MATRICES and getattr(layer, "is_complex", False):
                keywords = keywords | {"pairs": True}  # as a complex layer stores its matrix
            module, _, name = path.partition(":")
            optimizer = getattr(importlib.import_module(module), name)
            optimizers.append(optimizer(members, lr=settings["recurrent_lr"] if lr is None else lr, **keywords))
    return optimizers
