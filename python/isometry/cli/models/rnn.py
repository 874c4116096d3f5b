"""torch's own RNN with a free recurrent matrix: 54 units for adding and images [M], 138 for copying (22k parameters).

The matrix starts orthogonal, as usual for plain RNNs on long sequences; gradients are clipped to norm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isometry.cli.models._base import Setting, TorchModel
from isometry.cli.models._common import SHARED

if TYPE_CHECKING:
    from torch import Tensor, nn


class RNN(TorchModel):
    name = "rnn"

    def defaults(self, task: str) -> dict[str, Any]:
        optimizer = "rmsprop" if task == "copying" else "adam"
        common = {"lr": 1e-3, "recurrent_lr": 1e-4, "optimizer": optimizer, "recurrent_optimizer": optimizer}
        return common | {"hidden": 138 if task == "copying" else 54, "clip": 1.0}

    def keywords(self, at: Setting) -> dict[str, Any]:  # noqa: ARG002
        return SHARED | {"nonlinearity": "tanh"}

    def build(self, inputs: int, hidden: int, keywords: Mapping[str, Any]) -> nn.Module:
        import torch

        layer = torch.nn.RNN(inputs, hidden, **keywords)
        for name, parameter in layer.named_parameters():
            if name.startswith("weight_hh"):
                torch.nn.init.orthogonal_(parameter)
            elif name.startswith("bias"):
                torch.nn.init.zeros_(parameter)
        return layer

    def matrices(self, layer: nn.Module) -> list[Tensor]:
        return [p for name, p in layer.named_parameters() if name.startswith("weight_hh")]
