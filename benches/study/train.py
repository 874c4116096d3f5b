"""One run: a layer on a task, by a rule that is the same for all.

Adam, batches of 32, gradients clipped to norm 1, a rate that falls to zero linearly over the updates. What determines
an orthogonal or unitary W has a fifth of the rate (`recurrent_parameters`); a W that is stored itself is kept unitary
by `CayleyRMSprop`. The score is that of the last update, on data that were not trained on.
"""

import math
import time
from typing import Any

import numpy as np
import torch
from torch import nn

import isometry.torch as it

from .layers import Choice, Network
from .tasks import ALL

CLIP, SLOWER = 1.0, 0.2


def optimisers(network: Network, rate: float) -> list[torch.optim.Optimizer]:
    groups = it.nn.parameter_groups(network, lr=rate, recurrent_lr=SLOWER * rate)
    if not isinstance(network.layer, it.nn.FullCapacityURNN):
        return [torch.optim.Adam(groups)]
    rest, w = groups
    return [torch.optim.Adam([rest]), it.optim.CayleyRMSprop([w], lr=w["lr"], reorthogonalize=True, pairs=True)]


class Training:
    """A network on a task; `update()` is one of the `updates`, and its seconds."""

    def __init__(self, name: str, choice: Choice, rate: float, seed: int, updates: int) -> None:
        torch.manual_seed(seed)
        self.rng, self.task = np.random.default_rng(seed), ALL[name].make()
        self.network = Network(choice, self.task.inputs, self.task.outputs, last_only=self.task.last_only)
        self.steps = optimisers(self.network, rate)
        self.falling = [torch.optim.lr_scheduler.LambdaLR(o, lambda k: 1 - k / updates) for o in self.steps]
        self.broken = 0  # updates left out, whose gradients were not finite

    def update(self) -> float:
        begin = time.perf_counter()
        loss = self.task.update(self.network, self.rng)
        for each in self.steps:
            each.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(nn.utils.clip_grad_norm_(self.network.parameters(), CLIP))
        if math.isfinite(norm):
            for each in self.steps:
                each.step()
        else:
            self.broken += 1
        for schedule in self.falling:
            schedule.step()
        return time.perf_counter() - begin


def train(name: str, choice: Choice, rate: float, seed: int, updates: int) -> dict[str, Any]:
    """The score, that of chance, the milliseconds of an update, the parameters."""
    training = Training(name, choice, rate, seed, updates)
    seconds = sum(training.update() for _ in range(updates))
    network = training.network.eval()
    with torch.no_grad():
        score = training.task.score(network)
    parameters = sum(parameter.numel() for parameter in network.layer.parameters())
    found = {"score": round(score, 5) if math.isfinite(score) else 0.0, "chance": round(training.task.chance, 5)}
    found |= {"ms": round(1e3 * seconds / updates, 2), "parameters": parameters}
    return found | ({"not finite": training.broken} if training.broken else {})
