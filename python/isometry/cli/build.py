"""Makes task and layer of a run from their classes; errors are reported in terms of the options."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from isometry.cli import registry
from isometry.cli.errors import UsageError
from isometry.cli.settings import Settings


@contextmanager
def blamed(settings: Settings, where: str) -> Iterator[None]:
    """An error inside becomes a UsageError about the option whose name it begins with, else about `where`."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        raise settings.blame(error, where) from error


def make_task(settings: Settings) -> Any:
    """The task, given those of length, batch, seed and data that its constructor names."""
    entry = registry.find("task", settings["task"])
    taken = entry.keywords().take(registry.TAKEN)
    where = settings.where("task")
    with blamed(settings, where):
        task = entry.load()(**{name: settings[name] for name in taken}, **settings["task_options"])
    for name in ("inputs", "outputs"):
        if type(size := getattr(task, name, None)) is not int:
            raise UsageError(f"{where}: {type(task).__name__} lacks the integer {name}")
        if size < 1:
            raise UsageError(f"{where}: {name} of {type(task).__name__} must be >= 1, not {size}")
    return task


def make_layer(settings: Settings, inputs: int) -> nn.Module:
    """The layer, drawn from torch's generator; a trained initial state starts uniform on +-h0_bound."""
    with blamed(settings, settings.where("model")):
        found = registry.find("model", settings["model"], settings.option("model")).load()
        layer: nn.Module = found(inputs, settings["hidden"], **settings["layer"])
    if settings["h0_bound"]:
        for name, parameter in layer.named_parameters():
            if name.startswith("h0"):
                nn.init.uniform_(parameter, -settings["h0_bound"], settings["h0_bound"])
    return layer


def as_batch(drawn: Any, device: torch.device | str = "cpu") -> tuple[Any, Tensor]:
    """Inputs (a tensor or a PackedSequence) and targets on the device, from NumPy arrays too; real numbers in single
    precision."""
    x, target = drawn
    x, target = x if isinstance(x, PackedSequence) else torch.as_tensor(x), torch.as_tensor(target)
    place: Any = device  # a PackedSequence knows its `to` without types
    target = target.float() if target.dtype is torch.float64 else target
    return x.float().to(place), target.to(place)
