"""The parameters of a model in two groups: those of the transitions, and all others."""

from typing import Any

from torch import Tensor, nn

from ._replacing import check_module


def parameter_groups(module: nn.Module, *, lr: float | Tensor, recurrent_lr: float | Tensor) -> list[dict[str, Any]]:
    """Parameter groups for an optimiser, with a learning rate of its own for the matrices W of all layers.

    Parameters
    ----------
    module : torch.nn.Module
        A layer, or a model with layers anywhere inside.
    lr, recurrent_lr : float
        The learning rates of all other parameters, and of those in ``recurrent_parameters()`` of a layer.

    Returns
    -------
    list of dict
        At most two groups, ``params`` and ``lr``: the others, then those of W. A group without parameters is left out.

    Raises
    ------
    TypeError
        If module is not a module.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> model = torch.nn.ModuleDict({"layer": it.nn.ScoRNN(3, 8), "readout": torch.nn.Linear(8, 2)})
    >>> optimizer = torch.optim.Adam(it.nn.parameter_groups(model, lr=1e-3, recurrent_lr=1e-4))
    >>> [(group["lr"], len(group["params"])) for group in optimizer.param_groups]
    [(0.001, 4), (0.0001, 1)]
    """
    check_module("module", module)
    own = {id(p) for layer in module.modules() for p in getattr(layer, "recurrent_parameters", tuple)()}
    fast = [p for p in module.parameters() if id(p) not in own]
    slow = [p for p in module.parameters() if id(p) in own]
    return [{"params": params, "lr": rate} for params, rate in ((fast, lr), (slow, recurrent_lr)) if params]
