"""LSTMCell and GRUCell: torch's cells, one step of a layer, as `from_torch` makes them."""

from typing import Any

import torch
from torch import Tensor

from ..._rules import check
from ..operators._operator import dense
from ._base import RecurrentLayer
from ._gates import NAMES
from ._plain import plain
from ._streaming import held
from .gru import GRU
from .lstm import LSTM


class _OneStep(RecurrentLayer):
    """A layer of one recurrence whose call is a step; torch's state dicts load, whose names have no suffix."""

    _parts = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **own: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, bias=bias, device=device, dtype=dtype, **own)

    @property
    def _runs_as_defined(self) -> bool:
        return type(self).forward is _OneStep.forward and not callable(self.__dict__.get("forward"))

    def forward(self, input: Tensor, hx: Any = None) -> Any:  # type: ignore[override]
        """The state after one step; arguments and results are those of torch's cell.

        Parameters
        ----------
        input : Tensor, shape (B, input_size) or (input_size,)
            The input of this step.
        hx : Tensor, shape (B, hidden_size) or (hidden_size,), optional
            The state before it, by default zero; an `LSTMCell` takes a pair.

        Returns
        -------
        Tensor
            The state after it; of an `LSTMCell` a pair.
        """
        name = type(self).__name__
        if dense("input", input).dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        state: Any = None
        if hx is not None:
            parts = hx if self._parts > 1 and isinstance(hx, (tuple, list)) else (hx,)
            if len(parts) != self._parts or not all(isinstance(t, Tensor) for t in parts):
                kind = "a torch.Tensor" if self._parts == 1 else "a pair (h_0, c_0) of torch.Tensors"
                check.kind("hx", kind, hx)
            expected = (*input.shape[:-1], self.hidden_size)
            for t in parts:
                if tuple(dense("hx", t).shape) != expected:
                    raise RuntimeError(f"{name}: Expected hx of shape {expected}, got {list(t.size())}")
            state = tuple([t.unsqueeze(0) for t in parts]) if self._parts > 1 else hx.unsqueeze(0)
        own = held(self)
        x = input if input.dim() == 2 else input.unsqueeze(0)
        if (by := plain(self, x, state, tuple(input.shape[:-1]), own is not None, False)) is not None:
            last = tuple([t.squeeze_(0) for t in by[1]])  # in place: no views
            return last if self._parts > 1 else last[0]
        found = None if own is None else own.step(input, self._one_state(state, input, True))
        return super().forward(input.unsqueeze(0), state)[1] if found is None else self._parted(found[1])

    def _parted(self, last: Tensor) -> Any:
        """Without the axis of layers; in place, as a view would be none of its own."""
        return super()._parted(last.squeeze(0)) if self._separate else last.squeeze_(0)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in NAMES if self._suffixes[0] else ():
            if prefix + name in state_dict:
                state_dict[prefix + name + self._suffixes[0]] = state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def step(self, input: Tensor, hx: Any = None) -> Any:  # type: ignore[override]
        """A call of the cell."""
        return self(input, hx)


class GRUCell(_OneStep, GRU):
    """The cell of ``torch.nn.GRUCell``; `cached` saves the packing of the matrices at every step.

    Parameters
    ----------
    input_size, hidden_size, bias, device, dtype
        As in ``torch.nn.GRUCell``, in its order. The parameters are those of a `GRU` of one layer with
        ``reset="after"``; torch's state dicts load.
    """

    def __init__(self, *sizes: Any, **keywords: Any) -> None:
        super().__init__(*sizes, reset="after", **keywords)


class LSTMCell(_OneStep, LSTM):  # type: ignore[misc]
    """The cell of ``torch.nn.LSTMCell``; `cached` saves the packing of the matrices at every step.

    Parameters
    ----------
    input_size, hidden_size, bias, device, dtype
        As in ``torch.nn.LSTMCell``, in its order, and so are the parameters and the state dict.
    """

    _parts = 2

    @property
    def weight_ih_l0(self) -> Any:  # type: ignore[override]
        """The weights by which a layer knows its precision and place."""
        return self.weight_ih

    def _all_suffixes(self) -> list[str]:
        return [""]
