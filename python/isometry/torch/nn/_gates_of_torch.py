"""The weights of ``torch.nn.GRU``: gates in the order r, z, h in one axis, where `GRU` has z, r, h in an axis of their
own.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

import torch
from torch import Tensor

#: Torch's name and ours.
NAMES = {"weight_ih": "weight_ih", "weight_hh": "weight_hh", "bias_ih": "bias", "bias_hh": "hidden_bias"}
#: r, z, h is z, r, h in this order, and back.
ORDER = (1, 0, 2)


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
