"""Calls of a layer with a mask: steps at which a sequence does not advance."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from .._dispatch.function import dtype_name
from ..operators._operator import dense


def masked(layer: Any, input: Tensor | PackedSequence, hx: Tensor | None, mask: Any) -> tuple[Tensor, Tensor]:
    """`forward` where the states of all layers are one tensor: those of the steps in the mask, the rest left out.

    The steps of each sequence come together, the layer runs over as many as there are, and every step reads its state
    there: its own, or outside the mask the one that was computed before it.
    """
    if isinstance(input, PackedSequence):
        raise ValueError("mask must not be given with a PackedSequence, which has its lengths")
    if len(layer._state) > 1:
        raise ValueError(f"mask needs a layer whose output is its state, which {type(layer).__name__} has not")
    if dense("input", input, "a torch.Tensor or a PackedSequence").dim() != 3:
        raise ValueError(f"mask needs a batch of sequences: input must be 3D, not {input.dim()}D")
    _check(mask, input)
    x, mask = (t.transpose(0, 1) if layer.batch_first else t for t in (input, mask))
    layer._check_forward(x, hx, 3, x.size(1))
    if x.shape[0] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    counts = mask.sum(0)
    # What stands outside the mask may be anything, and one sequence without a step is computed as one of one step.
    x = x.masked_fill(~mask.unsqueeze(-1), 0)
    order = (~mask).byte().argsort(dim=0, stable=True)
    output, last = layer._stack(x.gather(0, order.unsqueeze(-1).expand_as(x)), hx, counts.clamp(min=1))
    before = _before(layer, hx, last)
    last = torch.where((counts == 0).unsqueeze(-1), before, last)
    top, n = layer._directions, layer.hidden_size
    if layer.last_only:
        return torch.cat(last[-top:, :, :n].unbind(0), -1), last
    first, rank, outputs = before[-top:, :, :n], mask.cumsum(0), []
    for direction, states in enumerate(output.split(n, -1)):
        start = first[direction].unsqueeze(0)
        if direction:  # read from the end: outside the mask the state of the next step in it
            following = rank - mask.to(rank.dtype)
            rows, index = torch.cat((states, start)), torch.where(following == counts, x.shape[0], following)
        else:
            rows, index = torch.cat((start, states)), rank
        outputs.append(rows.gather(0, index.unsqueeze(-1).expand(*index.shape, n)))
    output = torch.cat(outputs, -1)
    return output.transpose(0, 1) if layer.batch_first else output, last


def _check(mask: Any, input: Tensor) -> None:
    if dense("mask", mask, "a torch.Tensor of bools").dtype is not torch.bool:
        raise TypeError(f"mask must be bool, not {dtype_name(mask.dtype)}")
    if mask.shape != input.shape[:2]:
        raise ValueError(f"mask must have the shape of the input without its features, not {tuple(mask.shape)}")


def _before(layer: Any, hx: Tensor | None, like: Tensor) -> Tensor:
    """The states before the first step, shaped as those after the last."""
    if hx is not None:
        return hx.to(like.dtype)
    if not layer.trainable_h0:
        return torch.zeros_like(like)
    starts = torch.stack([layer._start(suffix) for suffix in layer._suffixes])
    return starts.unsqueeze(1).expand_as(like).to(like.dtype)
