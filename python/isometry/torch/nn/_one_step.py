"""Calls of a layer on one time step, whose kernels take less time than what a sequence needs besides: the checks of all
arguments, orders, marks. Such a call reads the parameters at every call, unlike steps inside `cached`.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from ..._backend import Place
from .._dispatch.function import HALF
from .._dispatch.mode import KERNEL, RECORDED, mode
from .._dispatch.results import computed
from ..sequences._cells import Call
from ..sequences._plan import SEQUENCE
from ._step import OneStep, Steps, call_of, step_of
from ._streaming import held

#: Dtypes of the weights of real layers.
_WEIGHTS = (*HALF, torch.float32, torch.float64)


class Recorded(NamedTuple):
    """A step whose gradients are recorded, without x and h0."""

    call: Call
    tensors: list[Tensor | None]
    h0_at: int
    own: tuple[Tensor, ...]
    start: Tensor | None  # h0 where no state is given
    units: int  # numbers of a state that are the output

    def run(self, x: Tensor, h0: Tensor | None, shape: tuple[int, ...], _at: Place) -> tuple[Tensor, Tensor]:
        """The output, which is the states or their first numbers, and the states."""
        tensors, h0 = list(self.tensors), self.start if h0 is None else h0
        x = x if x.dim() == 3 else x.unsqueeze(0)
        tensors[0], tensors[self.h0_at] = x, None if h0 is None else h0.expand(x.shape[1], shape[-1])
        states = computed(SEQUENCE, RECORDED, None, self.call, (*tensors, *self.own, None, None, None))[0].view(shape)
        return states if self.units == shape[-1] else states[..., : self.units], states


def of_one_step(layer: Any, input: Tensor, hx: Tensor | None) -> tuple[Tensor, Tensor] | None:
    """The output and the states for an input of one step; None where a call is more than that, or refused."""
    time_first = input.dim() == 3 and not layer.batch_first
    found = _run(layer, input if time_first else input.select(input.dim() - 2, 0), hx)
    if found is None:
        return None
    output, last = found
    if len(layer._suffixes) == 1 and not layer._separate:  # the output may be that state, too
        last = last.clone()
    if time_first and output.dim() == 3 and not layer.last_only:
        return output.contiguous(), last
    lead = last.shape[1 : -len(layer._state)] if layer.last_only else input.shape[:-1]
    output = output if output.shape[:-1] == lead else output.reshape(*lead, -1)
    return output.contiguous(), last


def _run(layer: Any, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor] | None:
    """The same for x (B, d), (1, B, d) or (d,). None where W is computed from its parameters, or no kernel serves."""
    if is_compiling():
        return None
    if (inside := held(layer)) is not None:
        return inside.step(x, state)
    stored = layer.weight_ih_l0.dtype
    if stored not in _WEIGHTS or x.dtype is not stored or not (state is None or state.dtype is stored):
        return None
    if layer.bidirectional or layer._heads > 1:
        return None
    kernels, read = [], [x, state]
    for suffix in layer._suffixes:
        own = layer._as_given(suffix)
        if own is None:
            return None
        kernel, start = layer._as_stored(suffix), layer._start(suffix)
        kernels.append((kernel, own, start))
        read += [*kernel.arrays.values(), *own, start]
    how = mode(*read)
    if how is not KERNEL and how is not RECORDED:
        return None
    each: list[OneStep] = []
    for kernel, own, start in kernels:
        stem = "dense" if own else ""
        if how is KERNEL:
            each.append(step_of(layer, kernel, (stem, own), start))
        else:
            each.append(Recorded(*call_of(kernel, stem), own, start, layer.hidden_size))
    return Steps(each, torch.float32 if stored in HALF else stored, stored).run(layer, x, state)
