"""`from_torch` and `to_torch`: torch's recurrent layers on the kernels of this package, and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..._rules import check
from ._base import RecurrentLayer
from ._gates_of_torch import NAMES, apart, together
from .gru import GRU
from .lstm import LSTM
from .rnn import RNN

#: Torch's layers and ours.
_KINDS: dict[Any, Any] = {nn.RNN: RNN, nn.GRU: GRU, nn.LSTM: LSTM}
_OURS = {ours: theirs for theirs, ours in _KINDS.items()}
_SHARED = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")


def from_torch(module: nn.Module) -> Any:
    """Convert a ``torch.nn.RNN``, ``GRU`` or ``LSTM``, or all of them in a model, to layers of this package.

    The weights are copied.

    Parameters
    ----------
    module : torch.nn.Module
        A ``torch.nn.RNN``, ``GRU`` or ``LSTM``, or a module that contains some. Subclasses of these layers inside a
        module are left as they are.

    Returns
    -------
    RNN, GRU or LSTM
        A new layer that computes the same; its parameters are copies, on the same device and of the same dtype, each
        with its ``requires_grad``, in the same mode of training. A ``GRU`` has ``reset="after"``.
    torch.nn.Module
        For any other module, the module itself, with its layers replaced in place. A layer that is used in several
        places is replaced by one new layer; two layers that share a parameter get one each. Make the optimiser
        afterwards, since the parameters are new.

    Raises
    ------
    NotImplementedError
        A layer with ``proj_size``, with hooks, or with weights that a hook computes (``weight_norm``, ``prune``). No
        layer of a model is then replaced.
    TypeError
        If module is not a module, or is a subclass of one of torch's layers.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> theirs, x = torch.nn.GRU(3, 8), torch.randn(20, 5, 3)
    >>> ours = it.nn.from_torch(theirs)
    >>> torch.allclose(ours(x)[0], theirs(x)[0], atol=1e-6)
    True
    """
    if not isinstance(module, nn.Module):
        check.kind("module", "a torch.nn.Module", module)
    if type(module) in _KINDS:
        return _layer(module)
    if isinstance(module, nn.RNNBase):
        name = type(module).__name__
        raise TypeError(f"module must be a torch.nn.RNN, GRU or LSTM itself, not the subclass {name}")
    for layer in module.modules():
        if type(layer) in _KINDS:
            _check(layer)
    made: dict[Any, nn.Module] = {}
    for parent in list(module.modules()):
        for name, child in list(parent._modules.items()):
            if type(child) in _KINDS:
                made[child] = made.get(child) or _layer(child)
                setattr(parent, name, made[child])
    return module


def to_torch(layer: RNN | GRU | LSTM) -> Any:
    """Convert an `RNN`, `GRU` or `LSTM` of this package to the layer of torch.

    Parameters
    ----------
    layer : RNN, GRU or LSTM
        One that torch has: a `GRU` with ``reset="after"``; an `RNN` with tanh or relu and a free W; none with
        ``trainable_h0`` or ``last_only``.

    Returns
    -------
    torch.nn.RNN, torch.nn.GRU or torch.nn.LSTM
        A new layer that computes the same; its parameters are copies, on the same device and of the same dtype, each
        with its ``requires_grad``, in the same mode of training.

    Raises
    ------
    TypeError
        If torch has no such layer.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> it.nn.to_torch(it.nn.RNN(3, 8))
    RNN(3, 8)
    """
    why = None if type(layer) in _OURS else "it is no RNN, GRU or LSTM of isometry.torch"
    if isinstance(layer, RecurrentLayer):
        for name in ("trainable_h0", "last_only"):
            why = why or (f"torch has no {name}" if getattr(layer, name) else None)
    if type(layer) is GRU:
        why = why or ("torch resets after the product: reset is 'before'" if layer.reset == "before" else None)
    if type(layer) is RNN:
        why = why or ("torch has no transition" if layer.transition is not None else None)
        plain = layer.nonlinearity in ("tanh", "relu")
        why = why or (None if plain else f"torch has no nonlinearity {layer.nonlinearity!r}")
    if why is not None:
        raise TypeError(f"layer {type(layer).__name__} cannot become one of torch: {why}")
    kind = _OURS[type(layer)]
    found = _like(layer, kind, {"nonlinearity": layer.nonlinearity} if type(layer) is RNN else {})
    for suffix in layer._suffixes:
        for theirs, ours in _names(kind):
            if hasattr(layer, ours + suffix):
                arranged = together if kind is nn.GRU else None
                _copied(getattr(layer, ours + suffix), getattr(found, theirs + suffix), arranged)
    return found.train(layer.training)


def _check(module: Any) -> None:
    """Refuses what these layers do not have."""
    if module.proj_size:
        raise NotImplementedError("from_torch has no layers with proj_size")
    if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
        raise NotImplementedError(
            "from_torch keeps no hooks, and no weights that one computes (weight_norm, spectral_norm, prune): remove "
            "them first"
        )


def _names(kind: type[nn.Module]) -> list[tuple[str, str]]:
    """Torch's names and ours for a layer of torch."""
    return list(NAMES.items()) if kind is nn.GRU else [(name, name) for name in NAMES]


def _layer(module: Any) -> RNN | GRU | LSTM:
    """The layer of this package for one of torch."""
    _check(module)
    gated = type(module) is nn.GRU
    own = {"nonlinearity": module.nonlinearity} if type(module) is nn.RNN else {"reset": "after"} if gated else {}
    found = _like(module, _KINDS[type(module)], own)
    for suffix in found._suffixes:
        for theirs, ours in _names(type(module)):
            if hasattr(module, theirs + suffix):
                _copied(getattr(module, theirs + suffix), getattr(found, ours + suffix), apart if gated else None)
    return found.train(module.training)  # type: ignore[no-any-return]


def _like(layer: Any, kind: Any, own: dict[str, Any]) -> Any:
    """A layer of this kind with the sizes, the device and the dtype of another."""
    weight = layer.weight_ih_l0
    given = {name: getattr(layer, name) for name in _SHARED}
    # no random numbers are drawn on the meta device
    return kind(**given, **own, device="meta", dtype=weight.dtype).to_empty(device=weight.device)


@torch.no_grad()
def _copied(source: Tensor, target: Tensor, arranged: Any) -> None:
    """Copies a parameter into another."""
    target.copy_(source if arranged is None else arranged(source))
    target.requires_grad_(source.requires_grad)
