"""One recurrent layer made from another: what it must be, checked first, and then its weights, copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..._rules import check
from .._dispatch.function import dtype_name
from ._gates import NAMES, apart, together
from ._replacing import additions, carry, check_weight
from .cells import GRUCell, LSTMCell
from .gru import GRU
from .lstm import LSTM
from .rnn import RNN

#: Torch's layers and ours, and the cells.
LAYERS: dict[Any, Any] = {nn.RNN: RNN, nn.GRU: GRU, nn.LSTM: LSTM}
CELLS: dict[Any, Any] = {nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell}
OURS = {ours: theirs for theirs, ours in {**LAYERS, **CELLS}.items()}

_CELL = ("input_size", "hidden_size", "bias")
_LAYER = (*_CELL, "num_layers", "batch_first", "dropout", "bidirectional")


class Way(NamedTuple):
    """How a layer is converted."""

    function: str
    old: Any  # the class of the package that the layer is of
    own: dict[str, Any]  # the keywords of the layer besides those that all have
    kind: Any
    new: dict[str, Any]  # those of the new one
    names: Mapping[str, str]  # of parameters
    arranged: Callable[[Tensor], Tensor] | None
    shown: Any = None  # the class of the new layer, where it is a subclass


def to_ours(layer: Any, theirs: Any, subclass: Any = None) -> Way:
    """The way of a layer of torch."""
    if getattr(layer, "proj_size", 0):
        raise NotImplementedError("from_torch has no layers with proj_size")
    law = _law(layer, nn.RNN)
    new = {"reset": "after"} if theirs is nn.GRU else law
    kind = {**LAYERS, **CELLS}[theirs]
    arranged = apart if issubclass(kind, GRU) else None
    return Way("from_torch", theirs, law, kind, new, _names(kind), arranged, subclass)


def to_theirs(layer: Any, ours: Any, subclass: Any = None) -> Way:
    """The way of a layer of ours that torch has."""
    law = _law(layer, RNN)
    own = {"reset": "after"} if ours is GRU else law
    own = own | {"heads": layer.heads} if getattr(layer, "heads", 1) > 1 else own
    names = {here: there for there, here in _names(ours).items()}
    return Way("to_torch", ours, own, OURS[ours], law, names, _as_torch(layer, ours), subclass)


def _as_torch(layer: Any, ours: Any) -> Callable[[Tensor], Tensor] | None:
    """What makes a parameter of ours one of torch, with the blocks of heads in whole matrices."""
    arranged = together if issubclass(ours, GRU) else None
    if getattr(layer, "heads", 1) == 1:
        return arranged
    rank = layer.weight_hh_l0.dim()

    def made(t: Tensor) -> Tensor:
        t = layer._dense(t) if t.dim() == rank else t  # no other has as many axes
        return t if arranged is None else arranged(t)

    return made


def _names(ours: Any) -> dict[str, str]:
    """Torch's names of parameters and ours, whole or up to the number of the layer."""
    if ours is GRUCell:
        return {there: here + "_l0" for there, here in NAMES.items()}
    return dict(NAMES) if ours is GRU else {name: name for name in NAMES}


def _law(layer: Any, kind: Any) -> dict[str, Any]:
    return {"nonlinearity": layer.nonlinearity} if isinstance(layer, kind) else {}


class Prepared(NamedTuple):
    """A new layer without values."""

    layer: Any
    found: Any
    names: list[tuple[str, str]]  # of every parameter, there and here
    arranged: Callable[[Tensor], Tensor] | None

    def filled(self, copies: dict[Tensor, nn.Parameter]) -> Any:
        """The new layer with copies of the parameters, ``copies`` those of layers before."""
        found = self.found.to_empty(device=next(self.layer.parameters()).device)
        for name, new in self.names:
            p = self.layer.get_parameter(name)
            if p not in copies:
                copies[p] = _filled(found.get_parameter(new), p, self.arranged)
            setattr(found, new, copies[p])
        return found.train(self.layer.training)


def prepared(layer: Any, where: str, way: Way, others: Mapping[Tensor, str]) -> Prepared:
    """The new layer for one, none of whose parameters may be one of ``others``; an error says what it cannot keep."""
    given = {name: getattr(layer, name) for name in (_CELL if way.old in (*CELLS, *CELLS.values()) else _LAYER)}
    # no random numbers are drawn on the meta device
    quiet = given | {"dropout": 0.0} if "dropout" in given else given
    plain = way.old(**quiet, **way.own, device="meta")
    what = additions(layer, [name for name, p in plain._parameters.items() if p is not None])
    if what is not None:
        raise NotImplementedError(
            f"{way.function} keeps no hooks and nothing else that was added to a layer, and no weights that a hook "
            f"computes (weight_norm, spectral_norm, prune): remove {what} of {where} first"
        )
    weights = dict(layer.named_parameters(remove_duplicate=False))
    first = next(name for name in weights if name.startswith("weight_ih"))
    dtype, names = weights[first].dtype, []
    for name, p in weights.items():
        argument = f"{name} of {where}"
        check_weight(argument, p)
        check.exact(argument, tuple(p.shape), tuple(plain.get_parameter(name).shape))
        if p.dtype is not dtype:
            raise TypeError(f"{argument} must be {dtype_name(dtype)}, as {first} is, not {dtype_name(p.dtype)}")
        if p in others:
            raise NotImplementedError(f"{way.function} copies parameters, but {argument} is shared with {others[p]!r}")
        stem, mark, suffix = name.partition("_l")
        names.append((name, way.names.get(name) or way.names[stem] + mark + suffix))
    found = way.kind(**given, **way.new, device="meta", dtype=dtype)
    if (attribute := carry(layer, plain, found)) is not None:
        raise NotImplementedError(f"{way.function}: the attribute {attribute!r} of {where} means another thing there")
    if way.shown is not None:
        plain, found = found, way.shown.__new__(way.shown)
        vars(found).update(vars(plain))
    return Prepared(layer, found, names, way.arranged)


@torch.no_grad()
def _filled(target: nn.Parameter, source: Tensor, arranged: Callable[[Tensor], Tensor] | None) -> nn.Parameter:
    """A parameter with the values of another, its attributes and its ``requires_grad``."""
    target.copy_(source if arranged is None else arranged(source))
    vars(target).update(vars(source))
    target.requires_grad_(source.requires_grad)
    return target
