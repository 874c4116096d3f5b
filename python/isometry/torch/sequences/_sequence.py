"""Shared by all functions over a sequence: check the arguments, bring them to one dtype, sort the sequences, make one
call."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..._backend import only_cpu
from ..._cells._declaration import OWN_BIAS, START_STATE, Cell
from ..._rules import check, check_recurrence
from ..._rules.check import Shape
from ..._rules.masks import unmasked
from .._dispatch.function import COMPLEX_OF, dtype_name
from .._dispatch.mode import FORMULA, TRANSFORMED, WITHOUT_KERNELS, Mode, mode, symbolic, visible
from .._dispatch.plan import Tensors
from .._dispatch.results import computed
from ..operators._block_diagonal import BlockDiagonal
from ..operators._operator import Operator, dense, integers, real_tensor, tensor
from ._blocks import divided, joined, whole, whole_shape
from ._cells import Call
from ._ensemble import arranged, ensemble
from ._plan import SEQUENCE
from ._states import last_of

Given = dict[str, Any]  # tensors, None for one that is not given
#: Steps, sequences, n, and the members of an ensemble.
Sizes = tuple[int, int, int, int | None]
#: The activation, its slope, the settings of the cell, the checkpoint, the output.
Law = tuple[str, float, tuple[float | None, ...], str, str]


class Options(NamedTuple):
    """The arguments that are no tensors of a cell."""

    activation: str
    slope: float
    settings: tuple[float | None, ...]
    lengths: Tensor | Sequence[int] | None
    reverse: bool
    starts: Any = None
    backend: str | None = None
    checkpoint: str = "none"
    output: str = "states"
    heads: int = 1  # the blocks (heads, ...) by which block-diagonal matrices are given


def run(
    declaration: Cell,
    transition: Operator | None,
    given: Given,
    options: Options,
    packed: Callable[[Given], Given] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The states of a cell, or the last of each sequence, and the memory after them if it has one.

    `given` are the arrays that are declared by name, and "start_state", the state before the steps that `starts` marks;
    `packed` brings them into the order of the kernel.
    """
    activation, slope, settings, lengths, reverse, starts, backend, checkpoint, output, heads = options
    if backend is not None:
        check.backend(backend)
    if declaration.cpu_only:
        only_cpu(backend)
        backend = "cpu"
    reverse = check.flag("reverse", reverse)
    parted = len(declaration.state) > 1
    pair = given.pop(START_STATE) if parted else None
    tensors, dtype = _tensors(declaration, transition, given)
    state = tensors.pop(START_STATE, None)
    law = activation, slope, settings, checkpoint, output
    sizes, blocks = _sizes(declaration, transition, tensors, dtype, heads, law)
    steps, batch, n, members = sizes
    if transition is not None and not declaration.operator:
        check_recurrence.gated_transition(transition.shape, dtype_name(transition.dtype), n)
        check.same_precision("transition", dtype_name(transition.dtype), "x", dtype_name(dtype))
    if checkpoint == "reversible" and transition is not None:
        check_recurrence.reversible(activation, bool(settings[0]), transition._unitary(True))
    marks = None
    if starts is not None or state is not None or pair is not None:
        parts = _parts(declaration, pair, tensors["x"]) if state is None else [state]
        marks, state = _marked(starts, parts, sizes, declaration.width, given["x"].device, backend)
    if marks is not None and checkpoint == "reversible":
        checkpoint = "sqrt"  # the states before a mark cannot be obtained from those after it
    tensors, marks, state = _placed(declaration, tensors, sizes, (blocks, heads), marks, state)
    if blocks:
        members, transition = blocks, getattr(transition, "operator", None)
    ends, order = (None, None) if lengths is None else _order(lengths, steps, batch, given["x"].device)
    if order is not None:
        tensors, marks, state = _longest_first(declaration, order, tensors, marks, state)
    if parted:
        tensors = _one_state(declaration, tensors)
    if packed is not None:
        tensors = packed(tensors)
    values, last = tuple(tensors.values()), output == "last"
    how, stem, factors = _transition(transition, dtype, backend, (*values, ends, state, marks))
    if marks is not None and declaration.memory(*settings):
        how = FORMULA  # the kernels obtain a memory from the one after it, which a mark has made anew
    own = declaration.name, stem, activation, float(slope), settings, reverse
    whole = (members is not None and checkpoint == "none") or how is TRANSFORMED  # all states are kept
    call = Call(*own) if whole else Call(*own, checkpoint, last)
    if members is None:
        results = computed(SEQUENCE, how, backend, call, (*values, *factors, state, marks, ends))
    else:
        every = *values, *factors, state, marks, None if ends is None else ends[None]
        results = ensemble(how, backend, call, every, members, blocks=bool(blocks))
    states, memory = results if len(results) > 1 else (results[0], None)
    if last and not call.last:
        states = last_of(states, ends, reverse, tensors[declaration.state[0]])
    if order is not None:  # the user's order of the sequences
        back = order.argsort()
        states, memory = states.index_select(-2, back), None if memory is None else memory.index_select(-3, back)
    if blocks:
        return joined(states, declaration.width), memory
    return states if members is None or last else states.movedim(0, 1), memory


def both_parts(
    declaration: Cell, given: Given, options: Options, packed: Callable[[Given], Given] | None = None
) -> tuple[Tensor, Tensor]:
    """The states of a cell whose state has two parts."""
    states, _ = run(declaration, None, given, options, packed)
    first, second = [part.clone(memory_format=torch.contiguous_format) for part in states.chunk(2, -1)]
    return first, second


# ---------------------------------------------------------------- arguments


def _tensors(declaration: Cell, transition: Operator | None, given: dict[str, Any]) -> tuple[Given, torch.dtype]:
    """The arrays as tensors of one dtype, that of the states."""
    for name in declaration.required:
        if given[name] is None:
            check.kind(name, "a torch.Tensor", None)
    return _real(given) if declaration.real or transition is None else _of_one_precision(transition, given)


def _real(given: dict[str, Any]) -> tuple[Given, torch.dtype]:
    """The arrays as real tensors of the precision of x."""
    x = given["x"] = tensor("x", given["x"])
    dtype = x.dtype
    check.real("x", dtype_name(dtype))
    for name, value in given.items():
        if value is None or (isinstance(value, Tensor) and value.dtype is dtype and value.layout is torch.strided):
            continue
        if not isinstance(value, Tensor):
            check.kind(name, "a torch.Tensor", value)
        given[name] = real_tensor(name, value, "x", dtype, x.device)
    return given, dtype


def _of_one_precision(transition: Operator, given: dict[str, Any]) -> tuple[Given, torch.dtype]:
    """The arrays in the dtype of the states, complex where one of them or W is; the activation's bias is real."""
    made: Given = {name: None if t is None or name == OWN_BIAS else tensor(name, t) for name, t in given.items()}
    dtype, mixed = transition.dtype, False
    for name, t in made.items():
        if t is not None and t.dtype is not dtype:
            check.same_precision(name, dtype_name(t.dtype), "the transition", dtype_name(dtype))
            dtype, mixed = COMPLEX_OF[dtype], True
    if mixed or dtype is not transition.dtype:
        made = {name: None if t is None else t.to(dtype) for name, t in made.items()}
    own = given[OWN_BIAS]
    if own is not None:
        made[OWN_BIAS] = real_tensor(OWN_BIAS, own, "the transition", dtype, given["x"].device)
    return made, dtype


def _sizes(
    declaration: Cell, transition: Operator | None, tensors: Given, dtype: torch.dtype, heads: int, law: Law
) -> tuple[Sizes, int]:
    """What the kinds of all arguments decide: the sizes of the call, and the number of recurrences that it falls into,
    0 for one. Looked up where they have been checked before.
    """
    shapes: tuple[Shape | None, ...] = tuple([None if t is None else t.shape for t in tensors.values()])
    kind: tuple[Shape, Shape] | None = None
    blocks: Shape = ()
    if transition is not None:
        kind = transition.shape, transition.batch_shape
        if isinstance(transition, BlockDiagonal):
            blocks = transition.operator.batch_shape
    kinds = declaration, shapes, kind, blocks, dtype.is_complex, heads, law
    if not symbolic():
        try:
            return _looked_up(*kinds)
        except TypeError:  # what has no hash is no name or number, and refused below, as what was refused above
            pass
    return _checked(*kinds)


def _checked(
    declaration: Cell,
    shapes: tuple[Shape | None, ...],
    kind: tuple[Shape, Shape] | None,
    parts: Shape,
    complex_: bool,
    heads: int,
    law: Law,
) -> tuple[Sizes, int]:
    """`_sizes` of a transition of this shape and batch shape, whose blocks have the batch shape `parts`."""
    activation, slope, settings, checkpoint, output = law
    check_recurrence.checkpoint(checkpoint, affine=declaration.operator, memory=declaration.memory(*settings))
    check.choice("output", output, *check_recurrence.OUTPUTS)
    if heads > 1:
        each = zip(declaration.arrays, shapes, strict=True)
        shapes = tuple([whole_shape(s, a.factors, heads) if s and a.squares else s for a, s in each])
    sizes = _, _, n, members = declaration.sizes(shapes, kind, complex_, activation, slope)
    if members is not None:
        check_recurrence.of_ensemble(checkpoint)
    count = heads if heads > 1 else 0
    if declaration.operator and parts:
        count = 0 if members is not None else parts[-1]
    return sizes, count if count and check_recurrence.within_blocks(activation, n // count) else 0


#: The numbers of a law are checked in it and taken from the call, since -0.0 is equal to 0.0.
_looked_up = lru_cache(1024)(_checked)


def _placed(
    declaration: Cell, tensors: Given, sizes: Sizes, parts: tuple[int, int], marks: Tensor | None, state: Tensor | None
) -> tuple[Given, Tensor | None, Tensor | None]:
    """The arrays with an entry for each sequence, and the members of an ensemble, or the blocks, as first axis.

    `parts` are the blocks that the call falls into, and those by which its matrices are given.
    """
    _, batch, *_, members = sizes
    if members is not None:
        return arranged(declaration, tensors, batch, marks, state)
    for name, axes in declaration.each:
        t = tensors[name]
        tensors[name] = None if t is None else t.expand(batch, *t.shape[-axes:])
    blocks, heads = parts
    if blocks:
        return divided(declaration, tensors, blocks, marks, state)
    return whole(declaration, tensors) if heads > 1 else tensors, marks, state


def _parts(declaration: Cell, pair: Any, x: Any) -> list[Tensor]:
    """The parts of a state as real tensors, none where it is not given."""
    if pair is None:
        return []
    count = len(declaration.state)
    if not isinstance(pair, (tuple, list)) or len(pair) != count or not all(isinstance(t, Tensor) for t in pair):
        check.kind(START_STATE, f"{count} torch.Tensors, one for each part of the state", pair)
    return [real_tensor(START_STATE, t, "x", x.dtype, x.device) for t in pair]


def _one_state(declaration: Cell, tensors: Given) -> Given:
    """The parts of the initial state as one, that of the kernel; zero where one of them is not given."""
    first, *others = declaration.state
    parts = [tensors[name] for name in declaration.state]
    held = [t for t in parts if t is not None]
    joined = beside([torch.zeros_like(held[0]) if t is None else t for t in parts], -1) if held else None
    return {name: joined if name == first else t for name, t in tensors.items() if name not in others}


def beside(tensors: list[Tensor], axis: int) -> Tensor:
    """Tensors side by side along that axis, counted from the last; those before it are broadcast."""
    if len(tensors) == 1:
        return tensors[0]
    first = tensors[0].shape[:axis]
    if any(t.shape[:axis] != first for t in tensors):
        lead = torch.broadcast_shapes(*[t.shape[:axis] for t in tensors])
        tensors = [t.expand(*lead, *t.shape[axis:]) for t in tensors]
    return torch.cat(tensors, axis)


def _marked(
    starts: Any, parts: list[Tensor], sizes: Sizes, width: int, device: torch.device, backend: str | None
) -> tuple[Tensor, Tensor | None]:
    """The marks as integers, as the kernels take them, and the state before marked steps."""
    steps, batch, n, members = sizes
    for t in parts:
        check_recurrence.start_state(starts, t.shape, (steps, batch, width * n // len(parts)), members)
    check_recurrence.starts_served(gpu=backend == "gpu")
    unmasked("starts", starts)
    if isinstance(starts, Tensor):
        dense("starts", starts)
    try:
        marks = torch.as_tensor(starts, device=device)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        check.unreadable("starts", error)
    check_recurrence.starts(dtype_name(marks.dtype), tuple(marks.shape), steps, batch, members)
    if not parts:
        return marks.long(), None
    state = beside(parts, -1)
    lead = state.shape[:-2] or (() if members is None else (1,))
    return marks.long(), state.expand(*lead, batch, width * n)


# ---------------------------------------------------------------- the order of the sequences, W


def _order(
    lengths: Tensor | Sequence[int], steps: int, batch: int, device: torch.device
) -> tuple[Tensor, Tensor | None]:
    """The lengths, longest first as the kernels want them, and that order of the batch if it is another."""
    ends = integers("lengths", lengths)
    check_recurrence.lengths_shape(tuple(ends.shape), batch)
    seen = visible(ends)
    if seen:
        check_recurrence.lengths_range(int(ends.min()), int(ends.max()), steps)
    falling = seen and bool((ends[1:] <= ends[:-1]).all())
    # A separate copy, because the backward pass reads it again.
    ends = ends.to(device, copy=True)
    if falling:
        return ends, None
    order = ends.argsort(descending=True, stable=True)
    return ends[order], order


def _longest_first(
    declaration: Cell, order: Tensor, tensors: Given, marks: Tensor | None, state: Tensor | None
) -> tuple[Given, Tensor | None, Tensor | None]:
    """All that belongs to a sequence in this order; axes of members stay in front."""
    axes = {"x": -2, **{name: -1 - others for name, others in declaration.each}}
    tensors = {n: t.index_select(axes[n], order) if n in axes and t is not None else t for n, t in tensors.items()}
    marks, state = (None if t is None else t.index_select(at, order) for t, at in ((marks, -1), (state, -2)))
    return tensors, marks, state


def _transition(
    transition: Operator | None, dtype: torch.dtype, backend: str | None, tensors: Tensors
) -> tuple[Mode, str, Tensors]:
    """The mode of the call, and the object that steps the recurrence with its arguments: W by its factors, where
    kernels take them, else as a matrix.
    """
    if transition is None:
        return mode(*tensors), "", ()
    found = transition._factors(dtype)
    how = None
    if found is not None:
        how = mode(*tensors, *found[1])
        if found[0] == "dense" or how not in WITHOUT_KERNELS:
            return how, *found
    matrix = (transition.matrix(backend=backend).to(dtype),)
    return mode(*tensors, *matrix) if how is None else how, "dense", matrix
