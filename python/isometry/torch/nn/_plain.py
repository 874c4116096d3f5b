"""Sequences of one length without gradients: one call of the kernel for each recurrence, which reads everything as it
lies. What the call of a layer checks and arranges besides takes longer than the kernel where the sequences are short.
"""

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from ... import _core
from .._dispatch.function import HALF, empty, place, threads
from .._dispatch.mode import KERNEL, autocast, mode
from ..sequences._cells import CELLS, NAMES

#: Sequences up to which a step reads matrices as they lie as fast as packed ones, which `cached` keeps.
_FEW = 8


def plain(
    layer: Any, x: Any, hx: Any, lead: tuple[int, ...], packed: bool, keep: bool, counts: list[int] | None = None
) -> tuple[Tensor | None, tuple[Tensor, ...]] | None:
    """The output (T, B, n), if it is to be kept, and the parts of the last states without gradients, from x (T, B, d),
    (B, d) for one step, or the data of a PackedSequence with the number of sequences at each step: one call of the
    kernel for each recurrence, which reads everything as it lies. `lead` is (B,), or () without a batch; `packed` says
    whether others have packed the matrices for steps.

    None where W or an argument of the kernel is computed, where a gradient is recorded, and for what is refused.
    """
    if type(x) is not Tensor or is_compiling() or layer._heads > 1 or layer.is_complex or place(None) == "gpu":
        return None
    count, width = len(layer._suffixes), CELLS[layer._cell].declaration.width if layer._cell else 0
    steps, directions = len(counts) if counts else x.shape[0] if x.dim() == 3 else 1, layer._directions
    if not width or layer._separate is not (width > 1) or (packed and steps == 1 and lead > (_FEW,)):
        return None
    if (layer.num_layers > 1 and layer.dropout and layer.training) or layer._as_given(layer._suffixes[0]) is None:
        return None
    if torch.is_grad_enabled() and layer.weight_ih_l0.requires_grad:
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
        keeps = ((steps > 1 or counts is not None) and first + directions < count) or (
            keep and first + directions == count
        )
        outputs: list[Any] = []
        for k in range(first, first + directions):
            before = given and (given if count == 1 else tuple([part[k : k + 1] for part in given]))
            state = before, (1, *lead, layer.hidden_size), width
            found = _plain(layer, layer._suffixes[k], x, state, (k > first, counts), keeps)
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
    layer: Any, suffix: str, x: Tensor, state: tuple[Any, tuple[int, ...], int], order: tuple[bool, Any], keep: bool
) -> tuple[Tensor | None, tuple[Tensor, ...]] | None:
    """The same of one recurrence: `state` has the parts before it, their shape and number, `order` says whether x is
    read from its end, and how many sequences have each step.
    """
    before, shape, width = state
    own, (kernel, second) = layer._as_given(suffix), layer._apart(suffix)
    if own is None or (before is None and layer.trainable_h0):
        return None
    arrays = (x.contiguous(), *[kernel.arrays.get(name) for name in NAMES[kernel.cell][1:]], None)
    matrices = own[0] if own else None, second
    read = [t for t in (*arrays, *(before or ()), *matrices) if t is not None]
    if mode(*read) is not KERNEL or any(map(Tensor.is_neg, read)):
        return None
    if before is None:
        new = tuple([x.new_empty(shape) for _ in range(width)])
    else:
        new = tuple([torch.empty_like(part) for part in before])
    output = empty((*x.shape[:-1], shape[-1]), x.dtype)[0] if keep else None
    law = kernel.activation, kernel.slope, kernel.settings
    done = _core.plain_sequence(kernel.cell, law, matrices, arrays, before, new, output, order, threads())
    return (output, new) if done else None
