"""Formulas keep the precision of their arguments, also under autocast; some compute in double precision."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from .._dispatch.mode import autocast

P = ParamSpec("P")
R = TypeVar("R")


def full_precision(formula: Callable[P, R]) -> Callable[P, R]:
    """The formula in the precision of its arguments; autocast would compute its products in half precision."""

    @functools.wraps(formula)
    def exact(*args: P.args, **kwargs: P.kwargs) -> R:
        device = next(a.device for a in args if isinstance(a, Tensor))
        if not autocast(device):
            return formula(*args, **kwargs)
        with torch.autocast(device.type, enabled=False):
            return formula(*args, **kwargs)

    return exact


def doubled(t: Tensor) -> Tensor:
    """The tensor in double precision, where its device has that: "mps" has not."""
    return t if t.device.type == "mps" else t.to(torch.complex128 if t.is_complex() else torch.float64)
