"""The interface of ``torch.nn.RNN``, implemented once for every recurrent layer of this package.

A layer stacks ``num_layers`` recurrences, each run in one or two directions, each with parameters of its own
(`_parameters`).
"""

from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, Never, overload

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from ..._rules import check, check_export, check_recurrence
from .._dispatch.function import HALF
from .._dispatch.mode import autocast
from ..operators._operator import dense
from ..sequences._blocks import whole
from ..sequences._cells import CELLS, NOTHING
from ..sequences._sequence import Options, run
from ._contract import (
    Output,
    Sweep,
    check_constructor,
    check_dtype,
    check_heads,
    check_hidden,
    check_input,
    check_start_state,
    check_starts,
    unbatched,
)
from ._masking import masked
from ._one_step import called, of_one_step
from ._parameters import LayerParameters
from ._signature import name_constructor, refuse
from ._step import Kernel, OneStep
from ._streaming import Stepping


class RecurrentLayer(Stepping, LayerParameters):
    """Shapes, packing, initial states, dropout, stacking, errors and representation of ``torch.nn.RNN``.

    A subclass sets its own keywords as attributes, calls this constructor, and defines the hooks ``_shapes``,
    ``_reset`` and ``_kernel``, and ``_check_keywords`` and ``_fixed`` if needed. Nothing that depends on a parameter is
    kept between calls outside of `cached`, as ``functional_call``, ``deepcopy`` and optimisers require.
    """

    _own_keywords: tuple[str, ...] = ()
    """Attributes shown by ``repr`` after those of ``torch.nn.RNN``."""

    _divisible: bool = False
    """Whether the recurrent matrices may be block-diagonal, with ``heads`` blocks."""

    heads: int
    """The number of these blocks."""

    _cell: str = ""
    """The cell of the core whose kernels compute a recurrence, if one does."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Names and shows the constructor."""
        super().__init_subclass__(**keywords)
        name_constructor(cls, RecurrentLayer.__init__)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        heads: int = 1,
        trainable_h0: bool = False,
        checkpoint: Literal["none", "sqrt", "reversible"] = "none",
        last_only: bool = False,
        output: None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **unknown: Never,
    ) -> None:
        super().__init__()
        refuse(self, unknown)
        if output is not None:
            raise TypeError("output is no keyword of a layer: with last_only=True it returns the last states alone")
        classes = type(self).__mro__
        every = [vars(each).get("__init__") for each in classes[: classes.index(RecurrentLayer) + 1]]
        own = len({f.__code__ for f in every if isinstance(f, FunctionType)})
        sizes = check_constructor(input_size, hidden_size, num_layers, bias, batch_first, dropout, constructors=own)
        bidirectional = check.flag("bidirectional", bidirectional)
        trainable_h0 = check.flag("trainable_h0", trainable_h0)
        last_only = check.flag("last_only", last_only)
        check.choice("checkpoint", checkpoint, *check_recurrence.CHECKPOINTS)
        self.input_size, self.hidden_size, self.num_layers = sizes
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self._heads = check_heads(type(self).__name__, heads, self.hidden_size, self._divisible)
        if self._divisible:
            self.heads = self._heads
        self.trainable_h0 = trainable_h0
        self.checkpoint: Literal["none", "sqrt", "reversible"] = checkpoint
        self.last_only = last_only
        self._check_keywords()
        check_dtype(type(self).__name__, torch.get_default_dtype() if dtype is None else dtype, self.is_complex)

        self._register(device, dtype)
        self.reset_parameters()

    # ------------------------------------------------------------ hooks

    def _check_keywords(self) -> None:
        """Checks and completes the subclass's own keywords; the sizes are already checked."""

    def _run(self, sweep: Sweep) -> Tensor:
        """The states (T, B, n) of one recurrence, zero past the end of each sequence; or with output "last" the last
        of each (B, n).
        """
        return self._by_kernel(sweep)[0]

    def _by_kernel(self, sweep: Sweep, **more: Tensor | None) -> tuple[Tensor, Any]:
        """What the kernel of one recurrence gives, the memory after the states too; with more arrays of its cell."""
        suffix, x, h0, lengths, reverse, output, checkpoint, starts, start_state = sweep
        cell, settings, activation, slope, arrays = self._kernel(suffix)  # type: ignore[misc]
        given = {**NOTHING[cell], **arrays, **more, "x": x, "h0": h0, "start_state": start_state}
        law = activation, slope, settings, lengths, reverse, starts, None, checkpoint, output, self._heads
        return run(CELLS[cell].declaration, self._operator(suffix), given, Options(*law))

    def _operator(self, _suffix: str) -> Any:
        """W of one recurrence, where an operator stands in its cell."""
        return None

    def _outcome(self, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """What one recurrence gives: its output, as of ``_run``, and its last states (B, ...)."""
        states = self._run(sweep)
        return states, last_state(states, sweep)

    def _kernel(self, suffix: str) -> Kernel | OneStep:
        """The kernel of one recurrence, or a step made of it."""
        raise NotImplementedError(f"{type(self).__name__} must define _kernel()")

    def _as_stored(self, suffix: str) -> Kernel | OneStep:
        """The same for calls of the kernels alone, which may take parameters as they are where `_kernel` adds some."""
        return self._kernel(suffix)

    def _dense(self, w: Tensor) -> Tensor:
        """A recurrent weight with the blocks of its heads in whole matrices."""
        if self._heads == 1:
            return w
        return whole(CELLS[self._cell].declaration, {"w": w})["w"]

    def __prepare_scriptable__(self) -> None:
        """What torch.jit.script calls first."""
        check_export.in_script(type(self).__name__)

    @property
    def _runs_as_defined(self) -> bool:
        """Whether a call is the `forward` of this class, not one of a subclass or put in its place."""
        # not vars(self), which torch 2.8 does not trace
        return type(self).forward is RecurrentLayer.forward and not callable(self.__dict__.get("forward"))

    def _one_state(self, hx: Any, _input: Any, _step: bool = False) -> Tensor | None:
        """The states given beside an input, or the input of a step, as one tensor."""
        if hx is not None and (not isinstance(hx, Tensor) or hx.layout is not torch.strided):
            dense("hx", hx, "a torch.Tensor, the states of all layers and directions stacked")
        return hx

    def _parted(self, last: Tensor) -> Any:
        """The inverse of `_one_state`: tensors of their own, which may be overwritten and detached in place."""
        return last

    # ------------------------------------------------------------ forward

    @overload
    def forward(
        self,
        input: Tensor,
        hx: Tensor | None = None,
        *,
        starts: Tensor | None = None,
        start_state: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]: ...

    @overload
    def forward(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[Any, Tensor]: ...

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: Tensor | None = None,
        *,
        starts: Tensor | None = None,
        start_state: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Any, Tensor]:
        """Run the layer; arguments and results are those of ``torch.nn.RNN``.

        Parameters
        ----------
        input : Tensor or PackedSequence
            (T, B, input_size), (B, T, input_size) with ``batch_first``, or (T, input_size) without a batch.
        hx : Tensor, optional
            Initial states (num_layers * directions, B, hidden_size), without B for unbatched input; by default zero,
            or the trained ones with ``trainable_h0``. A pair of them where the state is a pair, as in an `LSTM`.
        starts : Tensor, bool, optional
            A reset mask (T, B), shaped as ``input`` without its features: True at the first step of each sequence.
            There the state is reset, and no gradient flows across. ``hx`` is the state before the first step, unless
            that is reset. In the other direction each sequence is read from its own end.
        start_state : Tensor, optional
            The state after a reset, shaped as ``hx``, or with the steps in front for a state of each reset, (T,
            num_layers * directions, B, hidden_size), whatever ``batch_first``; a pair where the state is one. Without
            it the state is zero, or the trained one with ``trainable_h0``. Entries where ``starts`` is False are not
            read.
        mask : Tensor, bool, optional
            The steps that are part of each sequence, shaped as ``starts``; at the others, whose input is not read, the
            state and the output stay what they were. Not together with ``starts``.

        Returns
        -------
        output : Tensor or PackedSequence
            States of the last layer for every step, the directions concatenated in the last axis; with ``last_only``
            the last state of each direction, (B, directions * hidden_size), a Tensor for packed input too.
        h_n : Tensor
            Last state of every layer and direction, shaped as ``hx``; a pair where the state is one.
        """
        if mask is None and starts is None and start_state is None and (found := called(self, input, hx)) is not None:
            return found
        given = self._one_state(hx, input)
        if mask is None:
            output, last = self._output(input, given, starts, start_state)
        elif starts is not None or start_state is not None:
            raise ValueError("mask must not be given together with starts or start_state")
        else:
            output, last = masked(self, input, given, mask)
        return output, self._parted(last)

    def _output(
        self, input: Tensor | PackedSequence, hx: Tensor | None, starts: Tensor | None, start_state: Any = None
    ) -> tuple[Any, Tensor]:
        """`forward`, where the states of all layers are one tensor."""
        if start_state is not None and starts is None:
            check_recurrence.needs_starts()
        if isinstance(input, PackedSequence):
            if starts is not None:
                raise ValueError("starts must not be given with a PackedSequence: pack the pieces instead")
            return self._forward_packed(input, hx)
        if not isinstance(input, Tensor) or input.layout is not torch.strided:
            dense("input", input, "a torch.Tensor or a PackedSequence")
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D tensor instead")
        batched = input.dim() == 3
        time, batch = (1, 0) if self.batch_first else (0, 1)
        if starts is None and input.size(time if batched else 0) == 1 and (found := of_one_step(self, input, hx)):
            return found
        rank = input.dim() + len(self._state) - 1
        if hx is not None and hx.dim() != rank:
            kind, also = "batched 3-D" if batched else "unbatched 2-D", "also " * (rank == input.dim())
            raise RuntimeError(f"For {kind} input, hx should {also}be {rank}-D but got {hx.dim()}-D tensor")
        x = input if batched else input.unsqueeze(batch)
        if hx is not None and not batched:
            hx = hx.unsqueeze(1)
        self._check_forward(x, hx, 3, x.size(batch))
        if x.size(time) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        if starts is not None:
            starts = check_starts(starts if batched else unbatched(starts, batch), x.shape[:2])
            starts = starts.transpose(0, 1) if self.batch_first else starts
        if start_state is not None:
            start_state = self._before_marks(start_state, x, x.size(batch) if batched else None)
        output, last = self._stack(x.transpose(0, 1) if self.batch_first else x, hx, None, starts, start_state)
        if not self.last_only:
            output = output.transpose(0, 1) if self.batch_first else output.contiguous()
        axis = 0 if self.last_only else batch
        return (output, last) if batched else (output.squeeze(axis), last.squeeze(1).clone())

    if TYPE_CHECKING:
        __call__ = forward

    def _forward_packed(self, input: PackedSequence, hx: Tensor | None) -> tuple[PackedSequence | Tensor, Tensor]:
        data, sizes, order, inverse = input
        dense("input", data)
        if hx is not None and order is not None:
            hx = hx.index_select(1, order)
        self._check_forward(data, hx, 2, int(sizes[0]))
        steps, batch = len(sizes), int(sizes[0])
        rows: Tensor | None = None
        if data.size(0) == steps * batch:  # all sequences have the same length
            output, last = self._stack(data.unflatten(0, (steps, batch)), hx, None)
        else:
            rows, lengths = packed_rows(sizes)
            rows = rows.to(data.device)
            padded = data.new_zeros(steps * batch, self.input_size).index_copy(0, rows, data)
            output, last = self._stack(padded.unflatten(0, (steps, batch)), hx, lengths)
        last = last if inverse is None else last.index_select(1, inverse)
        if self.last_only:
            return output if inverse is None else output.index_select(0, inverse), last
        packed = output.flatten(0, 1)
        packed = packed if rows is None else packed.index_select(0, rows)
        return PackedSequence(packed, sizes, order, inverse), last

    def _check_forward(self, x: Tensor, hx: Tensor | None, dimensions: int, batch: int) -> None:
        weight: Tensor = self.weight_ih_l0
        check_input(type(self).__name__, x, weight, dimensions, self.input_size, self.is_complex)
        check_hidden(x, hx, weight, (len(self._suffixes), batch, *self._state), self.is_complex)

    def _before_marks(self, state: Any, x: Tensor, batch: int | None) -> Tensor:
        """The states before marks of a batch of this size, or without one, as `_stack` takes them."""
        parts, (*lead, n) = len(self._starting_shapes()), self._state
        expected = (len(self._suffixes), *(() if batch is None else (batch,)), *lead, n // parts)
        steps = x.size(1 if self.batch_first else 0)
        made = check_start_state(state, parts, x, self.weight_ih_l0, steps, expected, self.is_complex)
        return made if batch is not None else made.unsqueeze(-1 - len(self._state))

    def _stack(
        self,
        x: Tensor,
        hx: Tensor | None,
        lengths: Tensor | None,
        starts: Tensor | None = None,
        start_state: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """All layers and directions: x (T, B, d) -> (T, B, directions * n) and h_n (layers * directions, B, n).

        With ``last_only`` the first is (B, directions * n).
        """
        x, hx = self._widened(x), None if hx is None else self._widened(hx)
        start_state = None if start_state is None else self._widened(start_state)
        if x.size(1) == 0:  # an empty batch is computed as one sequence of zeros, which gives zero gradients
            more = (*(0, 0) * len(self._state), 0, 1)
            starts = None if starts is None else F.pad(starts, (0, 1))
            hx, start_state = (None if t is None else F.pad(t, more) for t in (hx, start_state))
            output, last = self._stack(F.pad(x, (0, 0, 0, 1)), hx, None, starts, start_state)
            return output[:0] if self.last_only else output[:, :0], last[:, :0].clone()
        lasts: list[Tensor] = []
        for layer in range(self.num_layers):
            outputs, first = [], layer * self._directions
            for direction, suffix in enumerate(self._suffixes[first : first + self._directions]):
                own = self._start(suffix) if hx is None or starts is not None else None
                h0 = own if hx is None else hx[first + direction]
                what: Output = "last" if self.last_only and layer == self.num_layers - 1 else "states"
                if start_state is not None:
                    own = start_state.select(-2 - len(self._state), first + direction)
                law = bool(direction), what, self.checkpoint, starts, None if starts is None else own
                found = self._outcome(Sweep(suffix, x, h0, lengths, *law))
                outputs.append(found[0])
                lasts.append(found[1])
            x = outputs[0] if self._directions == 1 else torch.cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = dropped(x, self.dropout)
        return self._rounded(x), self._rounded(torch.stack(lasts))

    def _widened(self, tensor: Tensor) -> Tensor:
        """Half-precision numbers, here or of other modules under autocast, in the precision of the computation."""
        return tensor.to(self._weight_dtype) if tensor.dtype in HALF else tensor

    def _rounded(self, result: Tensor) -> Tensor:
        """A result in the weights' precision; under autocast in that of the computation."""
        dtype = self.weight_ih_l0.dtype
        return result.to(dtype) if dtype in HALF and not autocast(result.device) else result

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        parts += [f"{k}={getattr(self, k)}" for k, default in defaults.items() if getattr(self, k) != default]
        parts += [f"heads={self._heads}"] if self._heads > 1 else []
        parts += [f"{k}={getattr(self, k)!r}" for k in self._own_keywords]
        parts += ["trainable_h0=True"] if self.trainable_h0 else []
        parts += [f"checkpoint={self.checkpoint!r}"] if self.checkpoint != "none" else []
        return ", ".join(parts + (["last_only=True"] if self.last_only else []))


def packed_rows(sizes: Tensor) -> tuple[Tensor, Tensor]:
    """For batch sizes (T,): the row t B + b of every packed entry in the padded (T B,) array, and lengths (B,)."""
    inside = torch.arange(int(sizes[0]), device=sizes.device) < sizes[:, None]
    return inside.flatten().nonzero().squeeze(1), inside.sum(0)


def last_state(states: Tensor, sweep: Sweep) -> Tensor:
    """The state (B, n) that was computed last of each sequence; none is empty."""
    lengths = sweep.lengths
    if sweep.output == "last":
        return states
    if sweep.reverse:
        return states[0]
    if lengths is None:
        return states[-1]
    batch = torch.arange(states.size(1), device=states.device)
    return states[lengths.to(states.device) - 1, batch]


def dropped(x: Tensor, p: float) -> Tensor:
    """Dropout of whole units: the two parts of a complex number are dropped together."""
    return x * F.dropout(torch.ones_like(x.real), p) if x.is_complex() else F.dropout(x, p)
