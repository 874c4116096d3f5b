"""`to_torch`: layers of this package as those of torch."""

import warnings
from typing import Any

from torch import Tensor, nn

from ._base import RecurrentLayer
from ._conversion import CELLS, LAYERS, OURS, Way, prepared, to_theirs
from ._replacing import check_module, replace, unseen, weights_of_others
from .gru import GRU
from .rnn import RNN


def to_torch(module: nn.Module) -> Any:
    """Convert an `RNN`, `GRU` or `LSTM` of this package, or all of them in a model, to layers of torch.

    Parameters
    ----------
    module : torch.nn.Module
        A layer that torch has: an `LSTM`; a `GRU` with ``reset="after"``; an `RNN` with tanh or relu and a free W; none
        with ``trainable_h0`` or ``last_only``. Blocks of ``heads`` are written in whole matrices. Or a module in which
        all recurrent layers of this package are of these.

    Returns
    -------
    torch.nn.RNN, torch.nn.GRU or torch.nn.LSTM
        A new layer that computes the same; its parameters are copies, on the same device and of the same dtype, each
        with its ``requires_grad``, in the same mode of training, with the attributes that were set on the layer alone.
    torch.nn.Module
        For any other module, the module itself, with its layers replaced in place as in `from_torch`. Cells and
        subclasses become those that they were made of.

    Raises
    ------
    TypeError
        If torch does not have one of the layers; nothing is then replaced. If module is none of these layers and has
        no submodules.
    NotImplementedError
        If a layer has hooks or other additions, shares a parameter with a module that stays, or is held where a call of
        the model would still reach it, as in `from_torch`; nothing is then replaced.

    Warns
    -----
    UserWarning
        If a model holds no layers of this package, and none of torch.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.nn.to_torch(it.nn.RNN(3, 8))
    RNN(3, 8)
    >>> model = it.nn.from_torch(torch.nn.Sequential(torch.nn.GRU(3, 8)))
    >>> it.nn.to_torch(model)
    Sequential(
      (0): GRU(3, 8)
    )
    """
    check_module("module", module)
    if isinstance(module, RecurrentLayer) or not module._modules:
        return prepared(module, "layer", _way(module, "layer"), {}).filled({})
    layers = {each: path for path, each in module.named_modules() if isinstance(each, RecurrentLayer)}
    if not layers and not any(type(each) in {**LAYERS, **CELLS} for each in module.modules()):
        warnings.warn(f"to_torch replaced nothing in {type(module).__name__}: it has no recurrent layers", stacklevel=2)
    ways = {each: _way(each, repr(path)) for each, path in layers.items()}
    weights = {p: f"{path}.{name}" for each, path in layers.items() for name, p in each.named_parameters()}
    names = layers | weights
    for each, why in unseen(module, names).items():
        raise NotImplementedError(f"to_torch: {names[each]!r} {why}")
    others = weights_of_others(module, layers)
    ready = {each: prepared(each, repr(path), ways[each], others) for each, path in layers.items()}
    copies: dict[Tensor, nn.Parameter] = {}
    replace(module, {each: one.filled(copies) for each, one in ready.items()})
    return module


def _way(layer: Any, where: str) -> Way:
    """How a layer becomes one of torch; a TypeError says why it cannot."""
    subclass, _, kind = getattr(type(layer), "_of_torch", (None, None, type(layer)))
    why = None if kind in OURS else "it is no RNN, GRU or LSTM of isometry.torch"
    if isinstance(layer, RecurrentLayer):
        for name in ("trainable_h0", "last_only"):
            why = why or (f"torch has no {name}" if getattr(layer, name) else None)
    if kind is GRU:
        why = why or ("torch resets after the product: reset is 'before'" if layer.reset == "before" else None)
    if kind is RNN:
        why = why or ("torch has no transition" if layer.transition is not None else None)
        plain = layer.nonlinearity in ("tanh", "relu")
        why = why or (None if plain else f"torch has no nonlinearity {layer.nonlinearity!r}")
    if why is not None:
        raise TypeError(f"{where} {type(layer).__name__} cannot become one of torch: {why}")
    return to_theirs(layer, kind, subclass)
