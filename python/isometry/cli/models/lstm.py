"""torch's own LSTM with as many parameters as the scoRNN: 68 units for copying (22k), 60 for adding and images (15k).

Gradients are clipped to norm 1, biases start at zero except for the forget gate's: 1; in the adding problem [C] 2 up
to 200 steps, 4 up to 400, 0 above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isometry.cli.models._base import Setting, TorchModel
from isometry.cli.models._common import SHARED

if TYPE_CHECKING:
    from torch import Tensor, nn


class LSTM(TorchModel):
    name = "lstm"

    def defaults(self, task: str) -> dict[str, Any]:
        optimizer = "rmsprop" if task == "copying" else "adam"
        common = {"lr": 1e-3, "recurrent_lr": 1e-3, "optimizer": optimizer, "recurrent_optimizer": optimizer}
        return common | {"hidden": 68 if task == "copying" else 60, "clip": 1.0}

    def keywords(self, at: Setting) -> dict[str, Any]:
        forget = 1.0
        if at.task == "adding" and at.length is not None:
            forget = 2.0 if at.length <= 200 else 4.0 if at.length <= 400 else 0.0
        return SHARED | {"forget_bias": forget}

    def build(self, inputs: int, hidden: int, keywords: Mapping[str, Any]) -> nn.Module:
        import torch

        options = dict(keywords)
        forget = options.pop("forget_bias")
        layer = torch.nn.LSTM(inputs, hidden, **options)
        for name, parameter in layer.named_parameters():
            if name.startswith("bias"):  # gates in the order input, forget, cell, output; the two biases add up
                torch.nn.init.zeros_(parameter)
                if name.startswith("bias_ih"):
                    torch.nn.init.constant_(parameter[hidden : 2 * hidden], forget)
        return layer

    def matrices(self, layer: nn.Module) -> list[Tensor]:  # noqa: ARG002
        return []
