"""The models of the command line: a recurrent layer, the papers' settings for it, and its parameter groups.

Settings are plain dictionaries. Names that `defaults` may give: hidden, batch, iterations, lr, recurrent_lr, and
those of `settings.TRAINING` (optimizer, recurrent_optimizer, clip, ...). An absent name falls back to the task's
default, then to the general one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class Setting:
    """The inputs of the default values of keywords."""

    task: str
    length: int | None
    hidden: int


class Model:
    """One entry of the registry; a subclass is one file."""

    name: ClassVar[str]

    def defaults(self, task: str) -> dict[str, Any]:
        """The papers' settings for a task, or a choice where no paper has one."""
        raise NotImplementedError

    def keywords(self, at: Setting) -> dict[str, Any]:
        """The layer's own keywords with their default values; `--set` accepts these names."""
        raise NotImplementedError

    def build(self, inputs: int, hidden: int, keywords: Mapping[str, Any]) -> nn.Module:
        """The layer, freshly initialised from torch's generator; called like torch.nn.RNN."""
        raise NotImplementedError

    def groups(self, layer: nn.Module) -> dict[str, list[nn.Parameter]]:
        """Parameters with a separate learning rate, by group; the rest forms the group "main"."""
        raise NotImplementedError

    def matrices(self, layer: nn.Module) -> list[Tensor]:
        """The recurrent matrices whose distance from orthogonality is reported."""
        raise NotImplementedError


class IsometryModel(Model):
    """A layer of `isometry.torch.nn`."""

    layer: ClassVar[str]

    def build(self, inputs: int, hidden: int, keywords: Mapping[str, Any]) -> nn.Module:
        import isometry.torch

        return getattr(isometry.torch.nn, self.layer)(inputs, hidden, **keywords)

    def groups(self, layer: nn.Module) -> dict[str, list[nn.Parameter]]:
        return {"recurrent": list(layer.recurrent_parameters())}

    def matrices(self, layer: nn.Module) -> list[Tensor]:
        return [layer.recurrent_matrix(k) for k in range(layer.num_layers)]


class TorchModel(Model):
    """A layer of `torch.nn`, as a baseline. Its recurrent parameters are the matrices weight_hh."""

    def groups(self, layer: nn.Module) -> dict[str, list[nn.Parameter]]:
        return {"recurrent": [p for name, p in layer.named_parameters() if name.startswith("weight_hh")]}
