"""Shared by the layers of gated units: the reset, weights and biases of three gates, and phi."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from ..._rules import check, check_recurrence
from ._base import RecurrentLayer
from ._streaming import Kernel


class GatedLayer(RecurrentLayer):
    """A layer of gates z and r, and the candidate h.

    A subclass sets the attribute ``reset`` and the number of free n x n matrices.
    """

    reset: Literal["before", "after"]
    _matrices = 3

    def _check_keywords(self) -> None:
        super()._check_keywords()
        check.choice("reset", self.reset, "before", "after")
        check_recurrence.checkpoint(self.checkpoint, affine=False, memory=False)

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        n = self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_hh": (self._matrices, n, n), "weight_ih": (3, n, features)}
        return shapes | {"bias": (3, n)} if self.bias else shapes

    def _reset(self, suffix: str) -> None:
        self._draw_weights(suffix, "weight_hh", "weight_ih")

    def _given(self, suffix: str, x: Tensor) -> tuple[Any, ...]:
        """x, w, u and b of one recurrence."""
        w, u = self._read("weight_hh" + suffix), self._read("weight_ih" + suffix)
        return x, w, u, self._read("bias" + suffix) if self.bias else None

    def _gates(self, cell: str, suffix: str, activation: str, own_bias: Tensor | None) -> Kernel:
        """The kernel of one recurrence."""
        _, w, u, b = self._given(suffix, self.weight_ih_l0)
        arrays = {"w": w, "u": u, "b": b, "activation_bias": own_bias}
        return Kernel(cell, (float(self.reset == "after"),), activation, 0.1, arrays)
