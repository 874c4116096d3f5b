"""`from_torch` and `to_torch`: torch's recurrent layers on the kernels of this package, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..._rules import check
from .._dispatch.function import dtype_name
from ._base import RecurrentLayer
from ._gates import NAMES, apart, together
from ._replacing import additions, carry, check_weight, unseen
from .gru import GRU
from .lstm import LSTM
from .rnn import RNN

#: Torch's layers and ours.
_KINDS: dict[Any, Any] = {nn.RNN: RNN, nn.GRU: GRU, nn.LSTM: LSTM}
_OURS = {ours: theirs for theirs, ours in _KINDS.items()}
#: The names of parameters there, and here.
_GRU, _SAME = NAMES, {name: name for name in NAMES}
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
        with its ``requires_grad``, in the same mode of training, with the attributes that were set on the layer alone.
        A ``GRU`` has ``reset="after"``.
    torch.nn.Module
        For any other module, the module itself, with its layers replaced in place. A layer that is used in several
        places is replaced by one new layer, and parameters that layers share are shared afterwards. Make the optimiser
        afterwards, since the parameters are new.

    Raises
    ------
    NotImplementedError
        A layer with ``proj_size``, with hooks, of its parameters too, with a forward, parameters, buffers or submodules
        that were added to it, with weights that a hook computes (``weight_norm``, ``prune``), or that shares one with a
        module of another kind. A layer that was compiled by itself, by ``torch.compile`` or ``torch.jit``, is inside a
        ``DistributedDataParallel`` or FSDP, or is also held by an attribute that is no submodule: a call of the model
        would not reach the new layer. No layer of a model is then replaced.
    TypeError
        If module is not a module, or is a subclass of one of torch's layers, or a weight is not dense, or not float16,
        bfloat16, float32 or float64.

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
        return _layer(module, "module", {}, {})
    if isinstance(module, nn.RNNBase):
        name = type(module).__name__
        raise TypeError(f"module must be a torch.nn.RNN, GRU or LSTM itself, not the subclass {name}")
    layers: dict[nn.Module, str] = {}
    weights: dict[Tensor, str] = {}
    others: dict[Tensor, str] = {}
    for path, each in module.named_modules():
        if type(each) in _KINDS:
            layers[each] = path
            weights |= {p: f"{path}.{name}" for name, p in each.named_parameters()}
            continue
        others |= {p: f"{path}.{name}" for name, p in each._parameters.items() if p is not None}
        if isinstance(each, torch.jit.ScriptModule) and each.original_name in {kind.__name__ for kind in _KINDS}:
            kind = each.original_name
            raise NotImplementedError(f"from_torch: {path or 'module'!r} is a {kind} that torch.jit has compiled")
    if (why := unseen(module, layers | weights)) is not None:
        raise NotImplementedError(f"from_torch: {why}")
    copies: dict[Tensor, nn.Parameter] = {}
    made = {layer: _layer(layer, repr(path), copies, others) for layer, path in layers.items()}
    for parent in list(module.modules()):
        for name, child in list(parent._modules.items()):
            if child in made:
                setattr(parent, name, made[child])
    return module


def to_torch(layer: RNN | GRU | LSTM) -> Any:
    """Convert an `RNN`, `GRU` or `LSTM` of this package to the layer of torch.

    Parameters
    ----------
    layer : RNN, GRU or LSTM
        One that torch has: a `GRU` with ``reset="after"``; an `RNN` with tanh or relu and a free W; none with
        ``trainable_h0`` or ``last_only``. The blocks of ``heads`` are written in whole matrices.

    Returns
    -------
    torch.nn.RNN, torch.nn.GRU or torch.nn.LSTM
        A new layer that computes the same; its parameters are copies, on the same device and of the same dtype, each
        with its ``requires_grad``, in the same mode of training, with the attributes that were set on the layer alone.

    Raises
    ------
    TypeError
        If torch has no such layer.
    NotImplementedError
        If the layer has hooks or other additions, as in `from_torch`.

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
    law = {"nonlinearity": layer.nonlinearity} if type(layer) is RNN else {}
    names = {ours: theirs for theirs, ours in (_GRU if type(layer) is GRU else _SAME).items()}
    own = ({"reset": "after"} if type(layer) is GRU else law) | {"heads": layer.heads}
    way = _Way("to_torch", _OURS[type(layer)], own, law, names, _as_torch(layer))
    return _converted(layer, "layer", way, {}, {})


def _as_torch(layer: Any) -> Callable[[Tensor], Tensor]:
    """A parameter of a layer of this package in torch's form, with whole matrices."""
    rank, gated = layer.weight_hh_l0.dim(), type(layer) is GRU

    def made(t: Tensor) -> Tensor:
        t = layer._dense(t) if t.dim() == rank and layer.heads > 1 else t  # no other has as many axes
        return together(t) if gated else t

    return made


class _Way(NamedTuple):
    """How a layer is converted."""

    function: str
    kind: Any
    own: dict[str, Any]  # the keywords of the layer besides those that all have
    new: dict[str, Any]  # those of the new one
    names: dict[str, str]
    arranged: Callable[[Tensor], Tensor] | None


def _layer(module: Any, where: str, copies: dict[Tensor, nn.Parameter], others: dict[Tensor, str]) -> Any:
    """The layer of this package for one of torch."""
    if module.proj_size:
        raise NotImplementedError("from_torch has no layers with proj_size")
    gated = type(module) is nn.GRU
    law = {"nonlinearity": module.nonlinearity} if type(module) is nn.RNN else {}
    new = {"reset": "after"} if gated else law
    way = _Way("from_torch", _KINDS[type(module)], law, new, _GRU if gated else _SAME, apart if gated else None)
    return _converted(module, where, way, copies, others)


def _converted(layer: Any, where: str, way: _Way, copies: dict[Tensor, nn.Parameter], others: dict[Tensor, str]) -> Any:
    """A new layer with copies of the parameters, ``copies`` those of layers before; none may be one of ``others``."""
    given = {name: getattr(layer, name) for name in _SHARED}
    # no random numbers are drawn on the meta device
    plain = type(layer)(**given | {"dropout": 0.0}, **way.own, device="meta")
    what = additions(layer, plain._parameters)
    if what is not None:
        raise NotImplementedError(
            f"{way.function} keeps no hooks and nothing else that was added to a layer, and no weights that a hook "
            f"computes (weight_norm, spectral_norm, prune): remove {what} of {where} first"
        )
    weights = dict(layer.named_parameters(remove_duplicate=False))
    dtype, device = layer.weight_ih_l0.dtype, layer.weight_ih_l0.device
    for name, p in weights.items():
        argument = f"{name} of {where}"
        check_weight(argument, p)
        check.exact(argument, tuple(p.shape), tuple(plain.get_parameter(name).shape))
        if p.dtype is not dtype:
            raise TypeError(f"{argument} must be {dtype_name(dtype)}, as weight_ih_l0 is, not {dtype_name(p.dtype)}")
        if p in others:
            raise NotImplementedError(f"{way.function} copies parameters, but {argument} is shared with {others[p]!r}")
    found = way.kind(**given, **way.new, device="meta", dtype=dtype).to_empty(device=device)
    if (attribute := carry(layer, plain, found)) is not None:
        raise NotImplementedError(f"{way.function}: the attribute {attribute!r} of {where} means another thing there")
    for name, p in weights.items():
        stem, _, suffix = name.rpartition("_l")
        new = f"{way.names[stem]}_l{suffix}"
        if p not in copies:
            copies[p] = _filled(found.get_parameter(new), p, way.arranged)
        setattr(found, new, copies[p])
    return found.train(layer.training)


@torch.no_grad()
def _filled(target: nn.Parameter, source: Tensor, arranged: Callable[[Tensor], Tensor] | None) -> nn.Parameter:
    """A parameter with the values of another, its attributes and its ``requires_grad``."""
    target.copy_(source if arranged is None else arranged(source))
    vars(target).update(vars(source))
    target.requires_grad_(source.requires_grad)
    return target
