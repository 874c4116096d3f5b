"""A layer whose state is a pair, such as (h, c) of an LSTM."""

from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from ..._rules import check
from ..operators._operator import dense
from ._base import last_state
from ._cell import DECLARED, CellLayer
from ._contract import Sweep, check_hidden


class PairLayer(CellLayer):
    """States are pairs in calls of the layer and of ``step``, and side by side in the kernel.

    The names of the parts are those of the initial state in the declaration of the cell, as "h0" and "c0"; the trained
    ones are parameters of these names. The output is the first part.
    """

    _separate = True
    _parts_of_hx: tuple[str, str] = ("hx[0]", "hx[1]")
    """The parts in messages."""

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def forward(
            self,
            input: Tensor,
            hx: tuple[Tensor, Tensor] | None = None,
            *,
            starts: Tensor | None = None,
            start_state: tuple[Tensor, Tensor] | None = None,
            mask: Tensor | None = None,
        ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...

        @overload
        def forward(
            self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[Any, tuple[Tensor, Tensor]]: ...

        def forward(self, *args: Any, **keywords: Any) -> Any: ...

        __call__ = forward  # type: ignore[assignment]

        def step(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]: ...  # type: ignore[override]

    # ------------------------------------------------------------ hooks

    def _starting_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(DECLARED[self._cell].state, (self.hidden_size,))

    def _start(self, suffix: str) -> Tensor | None:
        if not self.trainable_h0:
            return None
        return torch.cat([self._read(name + suffix) for name in DECLARED[self._cell].state])

    @property
    def _state(self) -> tuple[int, ...]:
        """Both parts."""
        return (2 * self.hidden_size,)

    def _one_state(self, hx: Any, input: Any, step: bool = False) -> Tensor | None:
        """Both parts side by side."""
        if hx is None:
            return None
        if not isinstance(hx, (tuple, list)) or len(hx) != 2 or not all(isinstance(t, Tensor) for t in hx):
            names = ", ".join(f"{name[:-1]}_{name[-1]}" for name in DECLARED[self._cell].state)
            check.kind("hx", f"a pair ({names}) of torch.Tensors, the states of all layers and directions stacked", hx)
        for t in hx:
            if t.layout is not torch.strided:
                dense("hx", t)
        around = self._batch(input, step)
        if around is not None:
            expected = (len(self._suffixes), *around, self.hidden_size)
            if any(t.dim() != len(expected) for t in hx):
                kind, also = ("batched 3-D", "also be 3-D") if around else ("unbatched 2-D", "also be 2-D")
                names, found = " and ".join(self._parts_of_hx), ", ".join(f"{t.dim()}-D" for t in hx)
                raise RuntimeError(f"For {kind} input, {names} should {also} but got ({found}) tensors")
            x = input.data if isinstance(input, PackedSequence) else input
            for part, t in enumerate(hx):
                if tuple(t.shape) != expected:
                    raise RuntimeError(f"Expected hidden[{part}] size {expected}, got {list(t.size())}")
                check_hidden(x, t, self.weight_ih_l0, expected, False)
        return torch.cat(tuple(hx), -1)

    def _batch(self, input: Any, step: bool) -> tuple[int, ...] | None:
        """(B,) for this input, () without a batch; None for one that is refused."""
        if isinstance(input, PackedSequence):
            return (int(input.batch_sizes[0]),)
        rank = input.dim() + step if isinstance(input, Tensor) else 0
        if rank not in (2, 3):
            return None
        return (input.size(0 if step or self.batch_first else 1),) if rank == 3 else ()

    def _parted(self, last: Tensor) -> tuple[Tensor, ...]:
        return tuple([t.clone(memory_format=torch.contiguous_format) for t in last.split(self.hidden_size, -1)])

    def _outcome(self, sweep: Sweep) -> tuple[Tensor, Tensor]:
        states = self._run(sweep)
        return states[..., : self.hidden_size].contiguous(), last_state(states, sweep)
