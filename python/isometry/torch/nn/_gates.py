"""Shared by the layers of gated units: the reset, weights and biases of three gates, phi; and the weights of
``torch.nn.GRU``, whose gates have the order r, z, h in one axis, where `GRU` has z, r, h in an axis of their own."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from ..._rules import check, check_recurrence
from ..sequences.gru import gated
from ._base import RecurrentLayer
from ._contract import Sweep
from ._streaming import Kernel

#: Torch's name and ours.
NAMES = {"weight_ih": "weight_ih", "weight_hh": "weight_hh", "bias_ih": "bias", "bias_hh": "hidden_bias"}
#: r, z, h is z, r, h in this order, and back.
ORDER = (1, 0, 2)


class GatedLayer(RecurrentLayer):
    """A layer of gates z and r, and the candidate h.

    A subclass sets the attribute ``reset`` and the number of free n x n matrices.
    """

    reset: Literal["before", "after"]
    _matrices = 3
    _divisible = True

    def _check_keywords(self) -> None:
        super()._check_keywords()
        check.choice("reset", self.reset, "before", "after")
        check_recurrence.checkpoint(self.checkpoint, affine=False, memory=False)

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        n, k = self.hidden_size, self._head_size
        w = self._of_heads(self._matrices, k, k)
        shapes: dict[str, tuple[int, ...]] = {"weight_hh": w, "weight_ih": (3, n, features)}
        return shapes | {"bias": (3, n)} if self.bias else shapes

    def _reset(self, suffix: str) -> None:
        self._draw_weights(suffix, "weight_hh", "weight_ih")

    def _given(self, suffix: str, x: Tensor) -> tuple[Any, ...]:
        """x, w, u and b of one recurrence."""
        w, u = self._read("weight_hh" + suffix), self._read("weight_ih" + suffix)
        return x, w, u, self._read("bias" + suffix) if self.bias else None

    def _states(self, transition: Any, sweep: Sweep, law: tuple[str, Tensor | None, Tensor | None]) -> Tensor:
        """The states of one recurrence; `law` is the activation, its own bias, and the second bias of the candidate."""
        x, w, u, b = self._given(sweep.suffix, sweep.x)
        activation, own_bias, hidden_bias = law
        given = {"x": x, "w": w, "u": u, "b": b, "h0": sweep.h0, "hidden_bias": hidden_bias}
        given |= {"activation_bias": own_bias, "start_state": sweep.start_state}
        rest = sweep.lengths, sweep.reverse, None, sweep.checkpoint, sweep.output, sweep.starts
        return gated(transition, given, {}, self.reset, activation, 0.1, *rest, heads=self._heads)

    def _gates(self, cell: str, suffix: str, activation: str, own_bias: Tensor | None) -> Kernel:
        """The kernel of one recurrence."""
        _, w, u, b = self._given(suffix, self.weight_ih_l0)
        arrays = {"w": self._dense(w), "u": u, "b": b, "activation_bias": own_bias}
        return Kernel(cell, (float(self.reset == "after"),), activation, 0.1, arrays)


def is_torch(state: MutableMapping[str, Tensor], prefix: str) -> bool:
    """Whether a state dict has the names or shapes of torch."""
    weight = state.get(f"{prefix}weight_hh_l0")
    return f"{prefix}bias_ih_l0" in state or (weight is not None and weight.dim() == 2)


def apart(t: Tensor) -> Tensor:
    """Torch's array (3 n, ...) as ours (3, n, ...)."""
    return t.unflatten(0, (3, -1))[list(ORDER)]


def together(t: Tensor) -> Tensor:
    """Ours as torch's."""
    return t[list(ORDER)].flatten(0, 1)


def reordered(state: MutableMapping[str, Tensor], prefix: str, suffixes: Sequence[str]) -> None:
    """Replaces torch's entries of a state dict by ours."""
    for suffix in suffixes:
        for theirs, ours in NAMES.items():
            value = state.pop(f"{prefix}{theirs}{suffix}", None)
            if value is not None:
                fits = isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] % 3 == 0
                state[f"{prefix}{ours}{suffix}"] = apart(value) if fits else value
