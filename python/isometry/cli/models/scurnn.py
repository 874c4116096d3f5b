"""scuRNN: the complex scoRNN, W = (I + A)^-1 (I - A) D with A skew-Hermitian and D = diag(e^{i theta}) trained.

Three rates: Adam 1e-3 for the rest, RMSprop 1e-4 for A, Adagrad for theta (1e-3, for copying 1e-4). h0 is trained and
starts uniform on +-0.01. n = 130 for copying, 116 for adding and images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isometry.cli.models._base import IsometryModel, Setting
from isometry.cli.models._common import SHARED, spread_initial_state

if TYPE_CHECKING:
    from torch import nn


class ScuRNN(IsometryModel):
    name = "scurnn"
    layer = "ScuRNN"

    def defaults(self, task: str) -> dict[str, Any]:
        copying = task == "copying"
        return {
            "hidden": 130 if copying else 116,
            "lr": 1e-3,
            "recurrent_lr": 1e-4,
            "optimizer": "adam",
            "recurrent_optimizer": "rmsprop",
            "phases_lr": 1e-4 if copying else 1e-3,
            "phases_optimizer": "adagrad",
        } | ({"iterations": 30 * 100_000 // 50} if task == "adding" else {})

    def keywords(self, at: Setting) -> dict[str, Any]:  # noqa: ARG002
        return SHARED | {"nonlinearity": "modrelu", "trainable_h0": True}

    def build(self, inputs: int, hidden: int, keywords: Mapping[str, Any]) -> nn.Module:
        layer = super().build(inputs, hidden, keywords)
        spread_initial_state(layer, 0.01)
        return layer

    def groups(self, layer: nn.Module) -> dict[str, list[nn.Parameter]]:
        phases = [p for name, p in layer.named_parameters() if name.startswith("phases")]
        others = [p for p in layer.recurrent_parameters() if not any(p is q for q in phases)]
        return {"recurrent": others, "phases": phases}
