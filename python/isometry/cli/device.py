"""The device of --device; the GPU of --backend gpu, and the parts of a layer that it does not compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import isometry
from isometry.cli.errors import UsageError
from isometry.cli.settings import Settings
from isometry.gpu._coverage import has_cell, has_object

if TYPE_CHECKING:
    import torch
    from torch import nn


def chosen(settings: Settings) -> torch.device:
    """The device of the tensors; a UsageError if torch has none of that name."""
    import torch

    name, said = settings["device"], f"{settings.option('device')} {settings['device']}"
    if name != "cpu" and settings["backend"] == "gpu":
        raise UsageError(f"{said}: --backend gpu takes tensors on the CPU; choose one of the two")
    try:
        return torch.empty(0, device=name).device
    except (AssertionError, RuntimeError, NotImplementedError) as error:
        raise UsageError(f"{said}: torch has no such device here") from error


def opened(settings: Settings) -> None:
    """Open the GPU if the settings ask for one; a UsageError says what is missing."""
    if settings["backend"] != "gpu":
        return
    try:
        isometry.gpu.synchronize()
    except RuntimeError as error:
        raise UsageError(f"{settings.option('backend')} gpu: {error}; --backend cpu needs none") from error


def left_to_cpu(layer: nn.Module) -> str:
    """The part of the layer that `--backend gpu` leaves to the CPU; empty if none, or for an unknown class."""
    from torch.nn import RNNBase

    from isometry.torch.nn._base import RecurrentLayer

    name = type(layer).__name__
    if not isinstance(layer, RecurrentLayer | RNNBase):
        return ""
    if isinstance(layer, RNNBase) or not layer._cell or not has_cell(layer._cell):
        return f"the GPU has no kernels for {name}, which the CPU computes"
    transition = getattr(layer, "_object", None)
    if transition is None or has_object(transition._declaration.stem):
        return ""
    return f"the GPU has no kernels for W of {name}, which the CPU forms"
