"""A training in progress: network, optimisers, random generators; one `step` is one parameter update.

Everything that determines the next step is part of the session's state (checkpoint.py writes it), so a restored
session continues bit by bit as if it had not stopped.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

import isometry
from isometry.cli import models, tasks
from isometry.cli.errors import UsageError
from isometry.cli.optim import make_optimizers
from isometry.cli.settings import Settings


class Network(nn.Module):
    """A recurrent layer and its readout o = Y h + c, Y uniform on +-sqrt(6 / (features + outputs)), c = 0.

    The readout reads a complex state as [Re h | Im h].
    """

    def __init__(self, layer: nn.Module, hidden: int, outputs: int, *, complex_state: bool, last_only: bool) -> None:
        super().__init__()
        self.layer, self.last_only = layer, last_only
        self.readout = nn.Linear(2 * hidden if complex_state else hidden, outputs)
        nn.init.xavier_uniform_(self.readout.weight)
        nn.init.zeros_(self.readout.bias)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.layer(x)
        if self.last_only:
            states = states[-1]
        if states.is_complex():
            states = torch.cat([states.real, states.imag], -1)
        return self.readout(states)


class Session:
    """The state of one run; `iteration` counts the updates made."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.model = models.find(settings.model)
        torch.manual_seed(settings.seed)
        self.rng = np.random.default_rng(settings.seed)
        self.iteration, self.seconds = 0, 0.0
        try:
            self.source = tasks.find(settings.task).open(settings)
            self.network = self._build()
            self.source.draw(np.random.default_rng(settings.seed))  # a wrong keyword of the task fails here
        except (ValueError, TypeError) as error:
            raise UsageError(f"{settings.task} with {settings.model}: {error}") from error
        groups = self.model.groups(self.network.layer)
        self.optimizers = make_optimizers(settings, self.network.parameters(), groups)

    def _build(self) -> Network:
        layer = self.model.build(self.source.inputs, self.settings.hidden, self.settings.layer)
        with torch.no_grad():
            states, _ = layer(torch.zeros(1, 1, self.source.inputs))
        size, kind = states.shape[-1], states.is_complex()
        return Network(layer, size, self.source.outputs, complex_state=kind, last_only=self.source.last_only)

    def step(self) -> float:
        """One update on a fresh batch; returns the batch's loss before the update."""
        x, target = self.source.draw(self.rng)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        values = self.network(x)
        loss = self.source.loss(values, target)
        loss.backward()
        if clip := self.settings.training["clip"]:
            nn.utils.clip_grad_norm_(self.network.parameters(), clip)
        for optimizer in self.optimizers:
            optimizer.step()
        self.iteration += 1
        self._last = values.detach(), target
        return loss.item()

    @property
    def parameters(self) -> int:
        """The number of trained parameters (of a trapezoid the stored ones)."""
        return sum(p.numel() for p in self.network.parameters())

    @torch.no_grad()
    def orthogonality_error(self) -> float:
        """The largest e(W) of the recurrent matrices in units of n eps, NaN if there are none."""
        matrices = self.model.matrices(self.network.layer)
        if not all(torch.isfinite(w).all() for w in matrices):
            return float("nan")
        return max((float(isometry.orthogonality_error(w.numpy(force=True))) for w in matrices), default=float("nan"))

    @torch.no_grad()
    def scores(self) -> list[float]:
        """The task's scores after a step."""
        self.network.eval()
        try:
            return self.source.score(self.network, *self._last)
        finally:
            self.network.train()


def prepare(threads: int) -> None:
    """Set the thread budgets of both sides, and flush denormals: decaying states otherwise slow the CPU down many
    times."""
    torch.set_num_threads(threads)
    isometry.set_num_threads(threads)
    torch.set_flush_denormal(True)
