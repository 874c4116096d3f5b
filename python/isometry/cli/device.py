"""The device of --device; the GPU of --backend gpu, and the parts of a layer that it does not compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import isometry
from isometry import _core
from isometry.cli.errors import UsageError
from isometry.cli.settings import Settings

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
    """The part of the layer that `--backend gpu` leaves to the CPU; empty if none, or for an unknown class.

    Recurrences of the form h <- phi(W h + V x + b), gated units, LSTM and RUM run on the GPU, and so does W of an
    object with kernels there.
    """
    from torch.nn import RNNBase

    from isometry.torch.nn import GORU, GRU, LSTM, RNN, RUM
    from isometry.torch.nn._base import RecurrentLayer
    from isometry.torch.nn._transition import OrthogonalRNN

    name = type(layer).__name__
    if isinstance(layer, GRU | LSTM | RUM) or (isinstance(layer, RNN) and layer.transition is None):
        return ""
    if isinstance(layer, OrthogonalRNN | GORU):
        own = layer._object._declaration.stem in _core.gpu_objects()
        return "" if own else f"the GPU has no kernels for W of {name}, which the CPU forms"
    known = isinstance(layer, RecurrentLayer | RNNBase)
    return f"the GPU has no kernels for {name}, which the CPU computes" if known else ""
