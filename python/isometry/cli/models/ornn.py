"""oRNN: h_t = phi(W h_{t-1} + V x_t + b), W a product of m Householder reflections [M]. Adam throughout.

Adding: n = 128, m = 16, lr 0.01, leaky ReLU. Images: lr 1e-3 at batch 50. Copying uses OPLU; the paper gives no
sizes, so those of adding are used, at lr 1e-3. h0 is trained and starts uniform on +-sqrt(3 / (2 n)).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isometry.cli.models._base import IsometryModel, Setting
from isometry.cli.models._common import SHARED, ornn_bound, spread_initial_state

if TYPE_CHECKING:
    from torch import nn


class ORNN(IsometryModel):
    name = "ornn"
    layer = "ORNN"

    def defaults(self, task: str) -> dict[str, Any]:
        lr = 1e-2 if task == "adding" else 1e-3
        return {"hidden": 128, "lr": lr, "recurrent_lr": lr, "optimizer": "adam", "recurrent_optimizer": "adam"}

    def keywords(self, at: Setting) -> dict[str, Any]:
        activation = "oplu" if at.task == "copying" else "leaky_relu"
        own = {"reflections": min(16, at.hidden), "sign": "hard", "nonlinearity": activation, "slope": 0.1}
        return SHARED | own | {"trainable_h0": True}

    def build(self, inputs: int, hidden: int, keywords: Mapping[str, Any]) -> nn.Module:
        layer = super().build(inputs, hidden, keywords)
        spread_initial_state(layer, ornn_bound(hidden))
        return layer
