"""A call of a kernel on one time step."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ... import _core
from ..._backend import Place
from .._dispatch.function import HALF, Array, arrays, empty, place, readable
from .._dispatch.mode import RECORDED, autocast
from .._dispatch.plan import full, member
from .._dispatch.results import computed
from ..sequences._blocks import divided, pieces
from ..sequences._cells import CELLS, NAMES, NOTHING, Call, forward
from ..sequences._plan import SEQUENCE, _joined


class Kernel(NamedTuple):
    """The kernel of one recurrence: its cell with settings, and its arrays by name, x and h0 apart."""

    cell: str
    settings: tuple[float | None, ...]
    activation: str
    slope: float
    arrays: dict[str, Tensor | None]


#: One time step of a recurrence: from x (B, d) or (1, B, d), h0, the shape of the states and the place of the kernel to
#: the output and the states.
OneStep: TypeAlias = Callable[[Tensor, Tensor | None, tuple[int, ...], Place], tuple[Tensor, Tensor]]


class Step(NamedTuple):
    """A call of a kernel on one time step, without x and h0."""

    call: Call
    tensors: Sequence[Any]
    h0_at: int
    own: tuple[Any, ...]
    start: Tensor | None  # h0 where no state is given
    units: int  # numbers of a state that are the output
    packs: Array | None = None  # the matrices, as the kernel reads them; None where it packs them itself
    blocks: int | None = None  # of the matrices, each a recurrence of its own piece of the state; None for whole ones

    def run(self, x: Tensor, h0: Tensor | None, shape: tuple[int, ...], at: Place) -> tuple[Tensor, Tensor]:
        """The output, which is the states or their first numbers, and the states."""
        blocks, width, own = self.blocks, shape[-1] // self.units, shape
        if h0 is None and self.start is not None:
            h0 = self.start.expand(shape[1:])
        if blocks is not None:  # whose arrays have an axis of sequences even for one
            rows = x.shape[-2]
            x, own = x.expand(1, 1, *x.shape[-2:]), (1, rows, shape[-1])
            h0 = None if h0 is None else pieces(h0.expand(rows, shape[-1]), -1, width, blocks)
        states, h = empty(own, x.dtype)
        tensors = list(self.tensors)
        tensors[0], tensors[self.h0_at] = readable(x), None if h0 is None else readable(h0)
        read = self.own, tuple(tensors), None, None
        forward(self.call, read, (h, None, None), at, self.packs, blocks)
        if blocks is not None:
            if width > 1:
                states = states.view(*own[:-1], blocks, width, -1).transpose(-3, -2).reshape(shape)
            elif own != shape:
                states.squeeze_(1)  # no view: it may be the caller's
        if width == 1:
            return states, states
        return states[..., : self.units], states

    def recorded(self, x: Tensor, h0: Tensor | None, shape: tuple[int, ...], _at: Place) -> tuple[Tensor, Tensor]:
        """The same where gradients are recorded."""
        tensors, h0 = list(self.tensors), self.start if h0 is None else h0
        x = x if x.dim() == 3 else x.unsqueeze(0)
        tensors[0], tensors[self.h0_at] = x, None if h0 is None else h0.expand(x.shape[1], shape[-1])
        states = computed(SEQUENCE, RECORDED, None, self.call, (*tensors, *self.own, None, None, None))[0].view(shape)
        return states if self.units == shape[-1] else states[..., : self.units], states


def stepped(
    layer: Any, x: Tensor, state: Tensor | None, each: Sequence[OneStep], kind: torch.dtype, stored: torch.dtype
) -> tuple[Tensor, Tensor] | None:
    """The output after x (B, d), (1, B, d) or (d,), and the states; None where they do not fit.

    `each` are the steps of all recurrences of a layer, then the dtypes of states and weights.
    """
    at, count, rank = place(None), len(each), x.dim()
    shape = (count, *x.shape[rank == 3 : -1], *layer._state)
    fits = 0 < rank < 4 and x.shape[-1] == layer.input_size and 0 not in shape
    if at == "gpu" or not fits or not (state is None or state.shape == shape):
        return None
    half = stored in HALF
    if (half and autocast(x.device)) or (count > 1 and layer.dropout and layer.training):
        return None
    before = (None,) * count if state is None else (state if state.dtype is kind else state.to(kind)).unbind(0)
    x, shape, states = x if rank > 1 else x.unsqueeze(0), (1, *shape[1:]), []
    x = x if x.dtype is kind else x.to(kind)
    for one, h0 in zip(each, before, strict=True):
        x, last = one(x, h0, shape, at)
        states.append(last)
    new = last if count == 1 else torch.cat(states)
    return (x.to(stored), new.to(stored)) if half else (x, new)


def call_of(kernel: Kernel, stem: str) -> tuple[Call, list[Tensor | None], int]:
    """The call of one step, the arrays of its cell, and the place of h0 among them."""
    cell, settings, activation, slope, given = kernel
    names = NAMES[cell]
    call = Call(cell, stem, activation, float(slope), settings, False)
    return call, [given.get(name) for name in names], names.index("h0")


def step_of(
    layer: Any,
    kernel: Kernel,
    transition: tuple[str, tuple[Any, ...]],
    start: Tensor | None,
    blocks: int | None = None,
    packed: torch.dtype | None = None,
) -> Step:
    """The step of a kernel, with its matrices as they are, or packed as numbers of that type.

    With `blocks` the matrices and the arguments of the transition are those of so many blocks.
    """
    (stem, own), packs = transition, None
    if blocks is not None:
        arrays_of_all = NOTHING[kernel.cell] | kernel.arrays
        parts, *_ = divided(CELLS[kernel.cell].declaration, arrays_of_all, blocks, None, None)
        kernel, own = kernel._replace(arrays=parts), tuple(full(own, blocks))
    call, plain, at = call_of(kernel, stem)
    if stem == "dense":
        _, call, plain, own = _joined(call, plain, own, blocks)  # type: ignore[assignment]
    if packed is not None:
        operands, read = CELLS[call.cell].operands, (plain, own if call.stem == "dense" else ())
        each = [read] if blocks is None else [tuple([member(part, i) for part in read]) for i in range(blocks)]
        matrices = arrays([matrix for parts in each for matrix in operands(*parts)])
        _, packs = empty((_core.pack(matrices),), packed.to_real())  # type: ignore[arg-type, type-var]
        _core.pack(matrices, packs)  # type: ignore[arg-type, type-var]
    return Step(call, arrays(plain), at, arrays(own), start, layer.hidden_size, packs, blocks)
