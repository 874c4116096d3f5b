"""scoRNN: h_t = modReLU(W h_{t-1} + V x_t), W = (I + A)^-1 (I - A) D, rho of D's entries -1 [C].

RMSprop (alpha 0.9) at 1e-3 with 1e-4 for A; in the adding problem Adam for the rest. rho is n/2 for copying and for
adding up to 200 steps, 7n/10 for longer adding, n/10 for images read in order.
"""

from __future__ import annotations

from typing import Any

from isometry.cli.models._base import IsometryModel, Setting
from isometry.cli.models._common import SHARED

EPOCHS, EPOCH = 10, 100_000  # adding: ten passes over 100,000 sequences, in batches of 50


class ScoRNN(IsometryModel):
    name = "scornn"
    layer = "ScoRNN"

    def defaults(self, task: str) -> dict[str, Any]:
        common = {"hidden": 170, "lr": 1e-3, "recurrent_lr": 1e-4, "optimizer": "rmsprop"}
        common["recurrent_optimizer"] = "rmsprop"
        if task == "copying":
            return common | {"hidden": 190, "iterations": 10_000}
        if task == "adding":
            return common | {"optimizer": "adam", "iterations": EPOCHS * EPOCH // 50}
        return common

    def keywords(self, at: Setting) -> dict[str, Any]:
        if at.task == "digits":
            ones = at.hidden // 10
        elif at.task == "adding" and at.length is not None and at.length > 200:
            ones = 7 * at.hidden // 10
        else:
            ones = at.hidden // 2
        return SHARED | {"negative_ones": ones, "nonlinearity": "modrelu", "trainable_h0": False}
