"""Calls of a layer that need less than `_stack` arranges: sequences of one length without gradients, and one time step,
whose kernels take less time than the checks of all arguments, orders and marks. Such a call reads the parameters at
every call, unlike steps inside `cached`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.nn.utils.rnn import PackedSequence

from .._dispatch.function import HALF
from .._dispatch.mode import RECORDED, mode
from ._plain import plain
from ._step import OneStep, Step, call_of, stepped
from ._streaming import held

#: Dtypes of the weights of real layers.
_WEIGHTS = (*HALF, torch.float32, torch.float64)


def called(layer: Any, input: Any, hx: Any) -> tuple[Any, Any] | None:
    """What a call of the layer returns, where `plain` serves; the results are no views."""
    order = turned = None
    if isinstance(input, PackedSequence):
        (x, sizes, order, inverse), batched = input, True
        counts: Any = sizes.tolist() if type(x) is Tensor and x.dim() == 2 else None
        lead = tuple(counts[:1]) if counts else ()
        if not lead or (order is not None and hx is not None):
            return None
    elif type(input) is Tensor and input.dim() in (2, 3):
        batched, counts = input.dim() == 3, None
        turned = batched and layer.batch_first
        x = input.transpose(0, 1) if turned else input if batched else input.unsqueeze(1)
        lead = (x.size(1),) if batched else ()
    else:
        return None
    found = plain(layer, x, hx, lead, held(layer) is not None, not layer.last_only, counts)
    if found is None:
        return None
    output, parts = found
    if order is not None:
        parts = tuple([part.index_select(1, inverse) for part in parts])  # type: ignore[arg-type]
    last: Any = parts if layer._separate else parts[0]
    if output is None:
        ends = parts[0][-layer._directions :]
        return (ends[0].clone() if len(ends) == 1 else torch.cat(ends.unbind(0), -1)), last
    if counts:
        return PackedSequence(output, sizes, order, inverse), last
    return (output.transpose_(0, 1) if turned else output if batched else output.squeeze_(1)), last


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
    if mode(*read) is not RECORDED:
        return None
    each: list[OneStep] = []
    for kernel, own, start in kernels:
        each.append(Step(*call_of(kernel, "dense" if own else ""), own, start, layer.hidden_size).recorded)
    return stepped(layer, x, state, each, torch.float32 if stored in HALF else stored, stored)
