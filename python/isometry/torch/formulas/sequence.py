"""Any cell over a whole sequence, one step at a time: padding, lengths, direction.

The formula of a cell gives the input of its steps, the state they start from, and the step itself.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ._precision import full_precision
from .activation import activate


class Law(NamedTuple):
    """The parameters of a cell other than tensors."""

    activation: str
    slope: float
    settings: tuple[Any, ...]  # numbers and None, the cell's own, in the order of its declaration
    last: bool = False  # the last state of each sequence is wanted, not all

    def phi(self, z: Tensor, bias: Tensor | None) -> Tensor:
        """The activation."""
        return activate(z, self.activation, bias, self.slope)


#: What a cell carries from step to step: its state, and a memory if there is one.
Carried: TypeAlias = tuple[Tensor, ...]
#: A step: from its input and what is carried to what is carried next.
Step: TypeAlias = Callable[[Tensor, Carried], Carried]
#: From a law, W and the tensors of the cell to the input of the steps, (T, B, k), the initial state, and a step.
Formula: TypeAlias = Callable[..., tuple[Tensor, Carried, Step]]


@full_precision
def states(
    formula: Formula,
    law: Law,
    lengths: Tensor | None,
    reverse: bool,
    weight: Tensor | None,
    x: Tensor,
    *tensors: Tensor | None,
    marks: tuple[Tensor, Tensor | None] | None = None,
) -> tuple[Tensor, ...]:
    """The states (T, B, n), or the last of each sequence (B, n), and the memory after them if there is one.

    `marks` are the steps before which the state is another, and that state, of each step or of all.
    """
    steps = x.shape[0]
    if lengths is not None:
        inside = torch.arange(steps, device=x.device)[:, None] < lengths
        # Entries past a sequence's end must not reach a gradient, not even as 0 * NaN.
        x = torch.where(inside[..., None], x, torch.zeros_like(x))
    drive, carried, step = formula(law, weight, x, *tensors)
    drives = drive.unbind(0)
    if marks is not None:
        state = torch.zeros_like(carried[0]) if marks[1] is None else marks[1]
        begin = state.unbind(0) if state.dim() > carried[0].dim() else (state,) * steps
        memory = [torch.eye(m.shape[-1], dtype=m.dtype, device=m.device).expand(m.shape) for m in carried[1:]]
        fresh = marks[0].bool() if lengths is None else marks[0].bool() & inside
    found: list[Tensor] = []
    for t in reversed(range(steps)) if reverse else range(steps):
        if marks is not None and not (reverse and t == steps - 1):
            # backwards in time a piece ends before the step that follows it, if that is a step of the sequence
            at = t + 1 if reverse else t
            carried = _kept(fresh[at], (begin[at], *memory), carried)
        new = step(drives[t], carried)
        if lengths is None:
            carried = new
            found.append(new[0])
        else:
            carried = _kept(inside[t], new, carried)
            found.append(torch.where(inside[t][:, None], new[0], torch.zeros_like(new[0])))
    return carried[0] if law.last else torch.stack(found[::-1] if reverse else found), *carried[1:]


def _kept(inside: Tensor, new: Sequence[Tensor], old: Sequence[Tensor]) -> Carried:
    """The new values of the sequences that are `inside`, the old ones of the others."""
    pairs = zip(new, old, strict=True)
    return tuple([torch.where(inside.view(-1, *(1,) * (a.dim() - 1)), a, b) for a, b in pairs])


def first(h0: Tensor | None, drive: Tensor, n: int) -> Tensor:
    """The state before the first step: zero if none is given."""
    return drive.new_zeros((drive.shape[1], n)) if h0 is None else h0
