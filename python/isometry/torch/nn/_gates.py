"""Shared by the layers of gated units: the reset, weights and biases of three gates, phi; and the weights of
``torch.nn.GRU``, whose gates have the order r, z, h in one axis, where `GRU` has z, r, h in an axis of their own."""

from collections.abc import MutableMapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from ..._cells.gru import setting
from ._cell import CellLayer

#: Torch's name and ours.
NAMES = {"weight_ih": "weight_ih", "weight_hh": "weight_hh", "bias_ih": "bias", "bias_hh": "hidden_bias"}
#: r, z, h is z, r, h in this order, and back.
ORDER = (1, 0, 2)


class GatedLayer(CellLayer):
    """A layer of gates z and r, and the candidate h; a subclass sets the attribute ``reset``."""

    reset: Literal["before", "after"]
    _divisible = True

    @property
    def _second(self) -> bool:
        """Whether there is a second bias, that of the product."""
        return False

    def _settings(self) -> tuple[float | None, ...]:
        return setting(self.reset)

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        shapes = super()._shapes(features)
        if not self._second:
            shapes.pop("hidden_bias", None)
        return shapes

    def _reset(self, suffix: str) -> None:
        self._draw_weights(suffix, "weight_hh", "weight_ih")


def is_torch(state: MutableMapping[str, Tensor], prefix: str, suffix: str) -> bool:
    """Whether a state dict has names or shapes of torch; the suffix is that of one recurrence."""
    weights = [state.get(f"{prefix}{name}{suffix}") for name in ("weight_hh", "weight_ih")]
    named = any(f"{prefix}{name}{suffix}" in state for name in ("bias_ih", "bias_hh"))
    return named or any(weight is not None and weight.dim() == 2 for weight in weights)


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
