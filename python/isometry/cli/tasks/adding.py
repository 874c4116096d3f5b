"""Adding: the sum of the two marked values of a sequence of `length` steps.

Loss: mean squared error of the readout of the last state; baseline 1/6, the error of the constant answer 1.
"""

from typing import Any, ClassVar, Literal

from torch import Tensor
from torch.nn.functional import mse_loss

import isometry


class Adding:
    inputs, outputs, last_only = 2, 1, True
    baseline = 1 / 6
    baselines: ClassVar = {"always 1": 1 / 6}

    def __init__(self, *, length: int, batch: int, variant: Literal["halves", "half_open"] = "halves") -> None:
        self.arguments: dict[str, Any] = {"steps": length, "batch": batch, "variant": variant}
        self.title = f"Adding problem, {length:,} steps"

    def draw(self, rng: Any) -> tuple[Any, Any]:
        return isometry.tasks.adding(rng=rng, **self.arguments)

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        return mse_loss(values, target)
