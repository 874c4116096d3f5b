"""A call of a kernel on one time step."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.compiler import is_compiling

from ... import _core
from ..._backend import Place
from .._dispatch.function import HALF, Array, arrays, empty, place, readable, threads
from .._dispatch.mode import KERNEL, RECORDED, autocast, mode
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


#: Sequences up to which a step reads matrices as they lie as fast as packed ones, which `cached` keeps.
_FEW = 8


def plain(
    layer: Any, x: Any, hx: Any, lead: tuple[int, ...], packed: bool, keep: bool
) -> tuple[Tensor | None, tuple[Tensor, ...]] | None:
    """The output (T, B, n), if it is to be kept, and the parts of the last states without gradients, from x (T, B, d),
    or (B, d) for one step: one call of the kernel for each recurrence, which reads everything as it lies. `lead` is
    (B,), or () without a batch; `packed` says whether others have packed the matrices for steps.

    None where W or an argument of the kernel is computed, where a gradient is recorded, and for what is refused.
    """
    if type(x) is not Tensor or is_compiling() or layer._heads > 1 or layer.is_complex or place(None) == "gpu":
        return None
    count, width = len(layer._suffixes), CELLS[layer._cell].declaration.width if layer._cell else 0
    steps, directions = x.shape[0] if x.dim() == 3 else 1, layer._directions
    if not width or layer._separate is not (width > 1) or (packed and steps == 1 and lead > (_FEW,)):
        return None
    if layer.num_layers > 1 and layer.dropout and layer.training:
        return None
    if hx is not None and width > 1 and not isinstance(hx, (tuple, list)):
        return None
    given: Any = None if hx is None else tuple(hx) if width > 1 else (hx,)
    for part in given or ():
        if type(part) is not Tensor or part.shape != (count, *lead, layer.hidden_size) or part.dtype is not x.dtype:
            return None
    stored: Any = x.dtype if x.dtype in HALF else None
    if stored is not None:
        if autocast(x.device) or stored is not layer.weight_ih_l0.dtype:
            return None
        x, given = x.float(), given and tuple([part.float() for part in given])
    every: list[tuple[Tensor, ...]] = []
    for first in range(0, count, directions):
        keeps = (steps > 1 and first + directions < count) or (keep and first + directions == count)
        outputs: list[Any] = []
        for k in range(first, first + directions):
            before = given and (given if count == 1 else tuple([part[k : k + 1] for part in given]))
            found = _plain(
                layer, layer._suffixes[k], (x, before, (1, *lead, layer.hidden_size), width), k > first, keeps
            )
            if found is None:
                return None
            outputs.append(found[0] if keeps else found[1][0])
            every.append(found[1])
        x = outputs[0] if directions == 1 else torch.cat(outputs, -1)
    output = x if keeps else None
    last: tuple[Tensor, ...] = every[0] if count == 1 else tuple(map(torch.cat, zip(*every, strict=True)))
    if stored is not None:
        output, last = None if output is None else output.to(stored), tuple([part.to(stored) for part in last])
    return output, last


def _plain(
    layer: Any, suffix: str, given: tuple[Tensor, Any, tuple[int, ...], int], reverse: bool, keep: bool
) -> tuple[Tensor | None, tuple[Tensor, ...]] | None:
    """The same of one recurrence, for x, the parts of the state before it, and their shape and number."""
    x, before, shape, width = given
    own, (kernel, second) = layer._as_given(suffix), layer._apart(suffix)
    if own is None or (before is None and layer.trainable_h0):
        return None
    arrays = (x, *[kernel.arrays.get(name) for name in NAMES[kernel.cell][1:]], None)
    matrices = own[0] if own else None, second
    read = [t for t in (*arrays, *(before or ()), *matrices) if t is not None]
    if mode(*read) is not KERNEL or any(map(Tensor.is_neg, read)):
        return None
    if before is None:
        new = tuple([x.new_empty(shape) for _ in range(width)])
    else:
        new = tuple([torch.empty_like(part) for part in before])
    output = empty((*x.shape[:-1], shape[-1]), x.dtype)[0] if keep else None
    law, order = (kernel.activation, kernel.slope, kernel.settings), (reverse, None)
    done = _core.plain_sequence(kernel.cell, law, matrices, arrays, before, new, output, order, threads())
    return (output, new) if done else None


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
