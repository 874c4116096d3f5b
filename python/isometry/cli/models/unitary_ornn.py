"""The unitary oRNN: complex reflections and a trained diagonal of phases, modReLU [M, section 3].

No paper trains it; it uses the oRNN's settings with the scuRNN's size and rates (recurrent: a tenth of the other).
"""

from __future__ import annotations

from typing import Any

from isometry.cli.models._base import IsometryModel, Setting
from isometry.cli.models._common import SHARED


class UnitaryORNN(IsometryModel):
    name = "unitary-ornn"
    layer = "UnitaryORNN"

    def defaults(self, task: str) -> dict[str, Any]:  # noqa: ARG002
        return {"hidden": 116, "lr": 1e-3, "recurrent_lr": 1e-4, "optimizer": "adam", "recurrent_optimizer": "rmsprop"}

    def keywords(self, at: Setting) -> dict[str, Any]:
        own = {"reflections": min(16, at.hidden - 1), "nonlinearity": "modrelu"}
        return SHARED | own | {"trainable_h0": False}
