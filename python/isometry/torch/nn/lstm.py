"""LSTM: torch's layer of four gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from ..._rules import check, check_recurrence
from .._dispatch.plan import Tensors
from ..sequences.lstm import stacked
from ._base import RecurrentLayer, last_state
from ._contract import Sweep, check_hidden
from ._streaming import Kernel


class LSTM(RecurrentLayer):
    r"""The layer of ``torch.nn.LSTM`` on the kernels of this package.

    .. math::

        (i'_t, f'_t, g'_t, o'_t) = W h_{t-1} + b' + U x_t + b, \qquad
        i, f, o = \sigma(i', f', o'), \qquad g = \tanh(g'), \\
        c_t = f_t * c_{t-1} + i_t * g_t, \qquad h_t = o_t * \tanh(c_t).

    States are pairs (h, c), in calls of the layer and of ``step``.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.LSTM``, which also has ``proj_size``.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``last_only`` and ``checkpoint``, here "none" or
        "sqrt".

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        U (4 hidden_size, features), the rows of i, f, g and o.
    weight_hh_l{k}[_reverse] : Parameter
        W (4 hidden_size, hidden_size).
    bias_ih_l{k}[_reverse], bias_hh_l{k}[_reverse] : Parameter
        b and b' (4 hidden_size).
    h0_l{k}[_reverse], c0_l{k}[_reverse] : Parameter
        The initial state (hidden_size), with ``trainable_h0``.

    Notes
    -----
    Names, shapes, the state dict and the initial draws are those of ``torch.nn.LSTM``; `from_torch` and `to_torch`
    convert. Saved for backward are h, c and the four gates of every step.

    References
    ----------
    Hochreiter, Schmidhuber. Long short-term memory. Neural Computation 1997.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.LSTM(3, 8)
    >>> output, (h_n, c_n) = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape, c_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]), torch.Size([1, 5, 8]))
    """

    _cell, _divisible = "lstm", True

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def forward(
            self,
            input: Tensor,
            hx: tuple[Tensor, Tensor] | None = None,
            *,
            starts: Tensor | None = None,
            start_state: tuple[Tensor, Tensor] | None = None,
        ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...

        @overload
        def forward(
            self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[Any, tuple[Tensor, Tensor]]: ...

        def forward(self, *args: Any, **keywords: Any) -> Any: ...

        __call__ = forward  # type: ignore[assignment]

        def step(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]: ...  # type: ignore[override]

    # ------------------------------------------------------------ hooks

    def _check_keywords(self) -> None:
        super()._check_keywords()
        check_recurrence.checkpoint(self.checkpoint, affine=False, memory=False)

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        n, k = self.hidden_size, self._head_size
        w = self._of_heads(4 * k, k)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (4 * n, features), "weight_hh": w}
        return shapes | {"bias_ih": (4 * n,), "bias_hh": (4 * n,)} if self.bias else shapes

    def _starting_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"h0": (self.hidden_size,), "c0": (self.hidden_size,)}

    def _start(self, suffix: str) -> Tensor | None:
        if not self.trainable_h0:
            return None
        return torch.cat((self._read("h0" + suffix), self._read("c0" + suffix)))

    def _reset(self, suffix: str) -> None:
        self._draw_as_torch(suffix)

    @property
    def _state(self) -> tuple[int, ...]:
        """h, then c."""
        return (2 * self.hidden_size,)

    def _one_state(self, hx: Any, input: Any, step: bool = False) -> Tensor | None:
        """h and c side by side."""
        if hx is None:
            return None
        if not isinstance(hx, (tuple, list)) or len(hx) != 2 or not all(isinstance(t, Tensor) for t in hx):
            check.kind("hx", "a pair (h_0, c_0) of torch.Tensors, the states of all layers and directions stacked", hx)
        around = self._batch(input, step)
        if around is not None:
            expected = (len(self._suffixes), *around, self.hidden_size)
            if any(t.dim() != len(expected) for t in hx):
                kind, also = ("batched 3-D", "also be 3-D") if around else ("unbatched 2-D", "also be 2-D")
                found = ", ".join(f"{t.dim()}-D" for t in hx)
                raise RuntimeError(f"For {kind} input, hx and cx should {also} but got ({found}) tensors")
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
        return tuple([t.contiguous() for t in last.split(self.hidden_size, -1)])

    def _weights(self, suffix: str) -> Tensors:
        """W, U and b."""
        b = self._read("bias_ih" + suffix) + self._read("bias_hh" + suffix) if self.bias else None
        return self._read("weight_hh" + suffix), self._read("weight_ih" + suffix), b

    def _outcome(self, sweep: Sweep) -> tuple[Tensor, Tensor]:
        states = stacked(sweep.x, self._weights(sweep.suffix), **sweep.keywords(), heads=self._heads)
        return states[..., : self.hidden_size].contiguous(), last_state(states, sweep)

    def _kernel(self, suffix: str) -> Kernel:
        w, u, b = self._weights(suffix)
        return Kernel("lstm", (), "tanh", 0.0, {"w": self._dense(w), "u": u, "b": b})
