"""A training in progress: network, optimisers, random generators; one `step` is one parameter update.

Everything that decides the next step and the next row of metrics.csv is part of the session's state (checkpoint.py
writes it), so a session that is restored goes on bit by bit as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import isometry
from isometry import _threads
from isometry.cli.build import as_batch, blamed, make_layer, make_task
from isometry.cli.distributed import Group
from isometry.cli.errors import UsageError
from isometry.cli.network import Network
from isometry.cli.optim import make_optimizers
from isometry.cli.settings import Settings


class Session:
    """The state of one run; `iteration` counts the updates made."""

    def __init__(self, settings: Settings, group: Group | None = None) -> None:
        self.settings, self.group = settings, group or Group()
        torch.manual_seed(settings["seed"])
        self.rng = np.random.default_rng(settings["seed"])
        self.iteration, self.seconds = 0, 0.0
        self.sums: dict[str, float] = {}  # of the losses and scores since the last row of metrics.csv
        self.count = 0
        self.task = make_task(settings)
        layer = make_layer(settings, self.task.inputs)
        with blamed(settings, f"--model {settings['model']}"):
            last_only = getattr(self.task, "last_only", False)
            self.network = Network(layer, self.task.inputs, self.task.outputs, last_only=last_only)
        self.optimizers = make_optimizers(settings, self.network, layer)
        self.baseline = float(getattr(self.task, "baseline", "nan"))
        self.title = getattr(self.task, "title", type(self.task).__name__)
        self._rehearse()
        self.trained = self.group.wrap(self.network)

    def _rehearse(self) -> None:
        """One batch without an update: what a class of the user's cannot do is said before anything is written."""
        task, model = f"--task {self.settings['task']}", f"--model {self.settings['model']}"
        with blamed(self.settings, f"{task}: draw"):
            x, target = as_batch(self.task.draw(np.random.default_rng(self.settings["seed"])))
        if x.dim() != 3 or x.shape[2] != self.task.inputs:
            raise UsageError(f"{task}: draw must give x of shape (T, B, {self.task.inputs}), not {tuple(x.shape)}")
        self.group.share(x, target, last_only=self.network.last_only)
        self.network.eval()
        with blamed(self.settings, model):
            values = self.network(x)
        with blamed(self.settings, f"{task}: loss"):
            loss = self.task.loss(values, target)
        if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
            raise UsageError(f"{task}: loss must give a differentiable tensor of shape ()")
        with blamed(self.settings, f"{task}: score"):
            self._scores("score", values.detach(), target)
        with blamed(self.settings, f"{task}: evaluate"):
            self._scores("evaluate", self.network)
        with blamed(self.settings, f"{model}: recurrent_matrix"):
            self.orthogonality_error()
        self.network.train()

    def step(self) -> float:
        """One update on a fresh batch; returns the batch's loss before the update."""
        x, target = self.group.share(*as_batch(self.task.draw(self.rng)), last_only=self.network.last_only)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        values = self.trained(x)
        loss = self.task.loss(values, target)
        loss.backward()
        if clip := self.settings["clip"]:
            nn.utils.clip_grad_norm_(self.network.parameters(), clip)
        for optimizer in self.optimizers:
            optimizer.step()
        self.iteration += 1
        self.count += 1
        found = self.group.mean({"loss": loss.item()} | self._scores("score", values.detach(), target))
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in found.items()}
        return found["loss"]

    def row(self) -> dict[str, float]:
        """A row of metrics.csv: loss and scores are means of the batches since `start_row`, the rest holds now."""
        means = {name: total / self.count for name, total in self.sums.items()}
        self.network.eval()
        held_out = self._scores("evaluate", self.network)
        self.network.train()
        return {
            "iteration": self.iteration,
            "loss": means.pop("loss"),
            "baseline": self.baseline,
            "seconds": self.seconds,
            "orthogonality_error": self.orthogonality_error(),
            **means,
            **held_out,
        }

    def start_row(self) -> None:
        """The next row's means begin here."""
        self.sums, self.count = {}, 0

    @property
    def parameters(self) -> int:
        """The number of trained parameters (of a trapezoid the stored ones)."""
        return sum(p.numel() for p in self.network.parameters())

    @torch.no_grad()
    def orthogonality_error(self) -> float:
        """The largest e(W) of the layer's recurrent matrices in units of n eps, NaN where there is none."""
        layer: Any = self.network.layer
        if not hasattr(layer, "recurrent_matrix"):
            return float("nan")
        sides: tuple[tuple[bool, ...], ...] = ((), (True,)) if getattr(layer, "bidirectional", False) else ((),)
        count = getattr(layer, "num_layers", 1)
        places = [(k, *side) for k in range(count) for side in sides] if count > 1 or len(sides) > 1 else [()]
        matrices = [layer.recurrent_matrix(*place) for place in places]
        if not all(torch.isfinite(w).all() for w in matrices):
            return float("nan")
        return max(float(isometry.orthogonality_error(w.numpy(force=True))) for w in matrices)

    @torch.no_grad()
    def _scores(self, method: str, *arguments: Any) -> dict[str, float]:
        """What the task's `score` (of a batch) or `evaluate` (on held-out data) finds, where it has one."""
        found = getattr(self.task, method)(*arguments) if hasattr(self.task, method) else {}
        return {name: float(value) for name, value in found.items()}


@contextmanager
def prepared(threads: int) -> Iterator[None]:
    """Thread budgets of both sides, and denormals as zero: decaying states otherwise slow the CPU down many times."""
    before, chosen = torch.get_num_threads(), _threads._chosen
    flushed = bool(np.float64(5e-324) * 1.0 == 0.0)
    torch.set_num_threads(threads)
    isometry.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _threads._chosen = chosen
        torch.set_flush_denormal(flushed)
