"""One step per call, and W formed once for many calls: what `RecurrentLayer.cached` holds.

Everything here follows from the layer's parameters and buffers. Each use compares their identities, versions and
addresses with those that it was made from, and makes it again if one has changed; so results never depend on whether a
layer is cached, except for changes through ``.data``, which have no version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from ... import _core
from .._cells import CELLS, Call
from .._function import arrays, given, place, room
from .._mode import KERNEL, RECORDED, autocast, mode
from .._sequence_function import _joined, forward
from ..operators.dense import Dense
from ._contract import HALF

if TYPE_CHECKING:
    from ._base import RecurrentLayer

#: Steps for which the cost of forming W does not count.
_MANY = 1 << 40


class Kernel(NamedTuple):
    """The kernel of one recurrence: its cell with settings, and its arrays by name, x and h0 apart."""

    cell: str
    settings: tuple[float | None, ...]
    activation: str
    slope: float
    arrays: dict[str, Tensor | None]


class Step(NamedTuple):
    """A call of a kernel on one time step, without x and h0."""

    call: Call
    tensors: list[Tensor | None]
    own: tuple[Tensor | None, ...]
    h0_at: int
    start: Tensor | None  # h0 where no state is given
    packs: Tensor | None  # V, and W if it is dense, as the kernel of the affine cell reads them

    def run(self, x: Tensor, h0: Tensor | None, shape: tuple[int, ...], at: int) -> Tensor:
        """The states of this shape."""
        if h0 is None and self.start is not None:
            h0 = given(self.start.expand(shape[1:]))  # type: ignore[assignment]
        if self.packs is None:
            tensors = list(self.tensors)
            tensors[0], tensors[self.h0_at] = x if x.dim() == 3 else x.unsqueeze(0), h0
            return forward(self.call, tensors, self.own, None, False, at)[0].view(shape)
        states, h = room(shape, x.dtype)
        _, weight, _, bias, own_bias = self.tensors
        law = self.call.activation, own_bias, self.call.slope, False
        sequence = (x, weight, h0, bias, *law, None, False)
        _core.recurrence(self.call.stem, self.own, sequence, h, at, self.packs)  # type: ignore[arg-type, type-var]
        return states


class Held:
    """What a layer inside `cached` has formed."""

    def __init__(self, layer: RecurrentLayer) -> None:
        self._layer = layer
        self._sources: list[tuple[Mapping[str, Tensor | None], str, Tensor, int, int]] = []
        self._transitions: dict[tuple[str, bool], Any] = {}
        self._steps: list[Step] = []

    def _fresh(self) -> bool:
        """Whether it still belongs to the layer's parameters and buffers; if not, forgets everything."""
        for owner, name, t, version, address in self._sources:
            if owner[name] is not t or t._version != version or t.data_ptr() != address:
                break
        else:
            if self._sources:
                return True
        self._transitions, self._steps, layer = {}, [], self._layer
        owners = layer._parameters, layer._buffers
        named = [(owner, name, t) for owner in owners for name, t in owner.items() if t is not None]
        # Parameters that are computed (torch.nn.utils.parametrize) and tensors of inference mode have no version.
        if layer._modules or any(t.is_inference() for _, _, t in named) or mode(*self._tensors()) not in _EAGER:
            self._sources = []
            return False
        self._sources = [(owner, name, t, t._version, t.data_ptr()) for owner, name, t in named]
        return True

    def _tensors(self) -> list[Tensor]:
        layer = self._layer
        return [t for owner in (layer._parameters, layer._buffers) for t in owner.values() if t is not None]

    def transition(self, suffix: str) -> Any:
        """The operator W of one recurrence, formed unless its factors are cheaper even so."""
        layer: Any = self._layer
        if mode(*self._tensors()) not in _EAGER or not self._fresh():
            return layer._transition(suffix)
        made, key = self._transitions, (suffix, torch.is_grad_enabled())
        if key not in made:
            op = layer._transition(suffix)
            if op._steps(op.dtype, _MANY, 1, True) is None:
                weight = op.matrix()
                if weight.requires_grad:
                    # Its graph is freed when its gradient has been computed.
                    weight.register_hook(lambda _: void(made.pop(key, None)))
                op = Dense(weight)
            made[key] = op
        return made[key]

    def step(self, x: Any, state: Any) -> Tensor | None:
        """The state after one step by the kernels alone; None where they do not serve, or an argument does not fit."""
        layer = self._layer
        if type(x) is not Tensor or not (state is None or type(state) is Tensor) or not self._fresh():
            return None
        traced = self._tensors() if torch.is_grad_enabled() else ()
        if mode(x, state, *traced) is not KERNEL:
            return None
        if not self._steps and not self._prepare():
            return None
        at, n, stored = place(None), layer.hidden_size, layer.weight_ih_l0.dtype
        kind, count, rank = self._steps[0].tensors[1].dtype, len(self._steps), x.dim()  # type: ignore[union-attr]
        shape = (count, n) if rank == 1 else (count, x.shape[0], n)
        fits = rank in (1, 2) and x.shape[-1] == layer.input_size and 0 not in shape
        if at == "gpu" or not fits or not (state is None or state.shape == shape):
            return None
        if layer.dropout and layer.training and count > 1:
            return None
        half = stored in HALF
        if half and autocast(x.device):
            return None
        found = [None] * count
        if state is not None:
            if state.dtype is not kind:
                if state.dtype is not stored:
                    return None
                state = state.to(kind)
            found = list(given(state).unbind(0))  # type: ignore[union-attr]
        if x.dtype is not kind:
            if x.dtype is not stored:
                return None
            x = x.to(kind)
        x, shape, states = given(x if rank == 2 else x.unsqueeze(0)), (1, *shape[1:]), []
        for one, h0 in zip(self._steps, found, strict=True):
            x = one.run(x, h0, shape, at)
            states.append(x)
        new = x if count == 1 else torch.cat(states)
        return new.to(stored) if half else new

    @torch.no_grad()
    def _prepare(self) -> bool:
        """Makes the steps; False for a layer that has none."""
        layer = self._layer
        if layer.bidirectional:
            return False
        kernels = [layer._kernel(suffix) for suffix in layer._suffixes]
        self._steps = [self._made(*pair) for pair in zip(layer._suffixes, kernels, strict=True) if pair[1] is not None]  # type: ignore[arg-type]
        return bool(self._steps)

    def _made(self, suffix: str, kernel: Kernel) -> Step:
        layer, (cell, settings, activation, slope, constants) = self._layer, kernel
        names = [name for name in CELLS[cell].declaration.names if not name.startswith("embed")]
        stem, own = "", ()
        dtype = next(t.dtype for t in constants.values() if t is not None)
        if hasattr(layer, "_transition"):
            op = self.transition(suffix)
            stem, own = op._steps(dtype, _MANY, 1, True) or ("dense", (op.matrix().to(dtype),))
        tensors = [None if (t := constants.get(name)) is None else given(t.detach()) for name in names]
        own = tuple([None if t is None else given(t.detach()) for t in own])
        call = Call(cell, stem, activation, float(slope), settings, False, "cpu")
        packs = None
        if cell == "recurrence":
            matrices = [tensors[1], *(own if stem == "dense" else ())]
            real = dtype.to_real()
            packs, out = room((_core.pack(matrices),), real)  # type: ignore[arg-type]
            _core.pack(matrices, out)  # type: ignore[arg-type]
        elif stem == "dense":
            _, call, tensors, own = _joined(call, tensors, own)  # type: ignore[assignment]
        start = given(layer._value("h0" + suffix).detach()) if layer.trainable_h0 else None
        return Step(call, list(tensors), arrays(own), names.index("h0"), start, packs)  # type: ignore[arg-type]


_EAGER = (KERNEL, RECORDED)
_HELD: ContextVar[Mapping[Any, Held]] = ContextVar("isometry_held", default=MappingProxyType({}))


def void(_: object) -> None:
    """Nothing, of anything: what a hook returns replaces a gradient."""


def held(layer: RecurrentLayer) -> Held | None:
    """What the layer holds, if this thread is inside its `cached`; nothing is held in a graph of the compiler."""
    return None if is_compiling() else _HELD.get().get(layer)


@contextmanager
def cached(layer: RecurrentLayer) -> Iterator[None]:
    """Inside, `held` is not None."""
    now = _HELD.get()
    token = _HELD.set(now if layer in now else {**now, layer: Held(layer)})
    try:
        yield
    finally:
        _HELD.reset(token)
