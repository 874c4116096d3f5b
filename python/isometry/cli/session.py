"""A training in progress: network, optimisers, random generators; one `step` is one parameter update.

Everything that decides the next step and the next row of metrics.csv is part of the session's state (checkpoint.py
writes it), so a restored session continues, to the last bit, as if it had never stopped.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from isometry import _threads
from isometry._threads import set_num_threads
from isometry.cli.build import as_batch, blamed, make_layer, make_task
from isometry.cli.distributed import Group
from isometry.cli.errors import UsageError
from isometry.cli.network import Network, recurrent_matrices
from isometry.cli.optim import make_optimizers
from isometry.cli.run_folder import OWN
from isometry.cli.settings import Settings
from isometry.metrics.orthogonality_error import orthogonality_error


@dataclass(frozen=True)
class Best:
    """The network of the best row so far, by the task's measure."""

    iteration: int
    value: float
    network: dict[str, Tensor]


class Session:
    """The state of one run; `iteration` counts the updates made."""

    def __init__(self, settings: Settings, group: Group | None = None, device: torch.device | str = "cpu") -> None:
        self.settings, self.group, self.device = settings, group or Group(), torch.device(device)
        torch.manual_seed(settings["seed"])
        self.rng = np.random.default_rng(settings["seed"])
        self.iteration, self.seconds = 0, 0.0
        self.sums: dict[str, float] = {}  # of the losses and scores since the last row of metrics.csv
        self.count = 0
        self.best: Best | None = None
        self.last_is_best = False  # set by `finish`
        self.task = make_task(settings)
        layer = make_layer(settings, self.task.inputs)
        with blamed(settings, settings.where("model")):
            last_only = getattr(self.task, "last_only", False)
            self.network = Network(layer, self.task.inputs, self.task.outputs, last_only=last_only)
        self.network.to(self.device)  # drawn on the CPU: the same seed starts from the same numbers everywhere
        with blamed(settings, f"--recurrent-optimizer {settings['recurrent_optimizer']}"):
            self.optimizers = make_optimizers(settings, self.network, layer)
        self.baseline = float(getattr(self.task, "baseline", "nan"))
        self.baselines: dict[str, float] = dict(getattr(self.task, "baselines", {}))
        self.note: str = getattr(self.task, "note", "")
        self.title = getattr(self.task, "title", type(self.task).__name__)
        self._rehearse()
        self.trained = self.group.wrap(self.network)

    def _rehearse(self) -> None:
        """One batch without an update, so that faults of a user's class are reported before anything is written."""
        task, model = self.settings.where("task"), self.settings.where("model")
        with blamed(self.settings, f"{task}: draw"):
            x, target = as_batch(self.task.draw(np.random.default_rng(self.settings["seed"])), self.device)
        rank, axes = (2, "(N") if isinstance(x, PackedSequence) else (3, "(T, B")
        shape = tuple(x.data.shape)
        if len(shape) != rank or shape[-1] != self.task.inputs:
            raise UsageError(f"{task}: draw must give x of shape {axes}, {self.task.inputs}), not {shape}")
        self.group.share(x, target, last_only=self.network.last_only)
        if self.settings["penalty"] and not hasattr(self.network.layer, "penalty"):
            raise UsageError(f"--penalty needs a layer with the method penalty, which {model} has not")
        self.network.eval()
        with blamed(self.settings, model):
            values = self.network(x)
        with blamed(self.settings, f"{task}: loss"):
            loss = self.task.loss(values, target)
        if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
            raise UsageError(f"{task}: loss must give a differentiable tensor of shape ()")
        with blamed(self.settings, f"{task}: score"):
            self.scored = _new(self._scores("score", values.detach(), target), OWN)
        with blamed(self.settings, f"{task}: evaluate"):
            self.held_out = _new(self._scores("evaluate", self._called), (*OWN, *self.scored))
            if hasattr(self.task, "best") and (self.task.best[0] not in self.held_out or len(self.task.best) != 2):
                raise ValueError(f"best must be a score of evaluate and min or max, not {self.task.best!r}")
        if ":" in self.settings["task"]:  # built-in tasks work, and their test data may be large
            with blamed(self.settings, f"{task}: test"):
                self._scores("test", self._called)
        with blamed(self.settings, f"{model}: recurrent_matrix"):
            self.orthogonality_error()
        self.network.train()

    def step(self) -> float:
        """One update on a fresh batch; returns the batch's loss before the update."""
        x, target = self.group.share(*as_batch(self.task.draw(self.rng), self.device), last_only=self.network.last_only)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        values = self.trained(x)
        loss = self.task.loss(values, target)
        (loss + self._penalty()).backward()
        if clip := self.settings["clip"]:
            nn.utils.clip_grad_norm_(self.network.parameters(), clip)
        for optimizer in self.optimizers:
            optimizer.step()
        self.iteration += 1
        self.count += 1
        scores = self._scores("score", values.detach(), target)
        found = self.group.mean({"loss": loss.item()} | self._same("score", scores, self.scored))
        self.sums = {name: self.sums.get(name, 0.0) + value for name, value in found.items()}
        return found["loss"]

    def _penalty(self) -> Tensor | float:
        """A multiple of the layer's penalty, added to the loss but not reported."""
        weight: float = self.settings["penalty"]
        layer: Any = self.network.layer
        return weight * layer.penalty() if weight else 0.0

    def row(self) -> dict[str, float]:
        """A row of metrics.csv: loss and scores are means over the batches since `start_row`, the rest are current
        values."""
        means = {name: total / self.count for name, total in self.sums.items()}
        held_out = dict.fromkeys(self.held_out, float("nan"))
        if self._due():
            held_out = self._same("evaluate", self.scores("evaluate"), self.held_out)
        return {
            "iteration": self.iteration,
            "loss": means.pop("loss"),
            "baseline": self.baseline,
            "seconds": self.seconds,
            "orthogonality_error": self.orthogonality_error(),
            **means,
            **held_out,
        }

    def _due(self) -> bool:
        """Whether to evaluate held-out data: in the first row, in those that pass a multiple of `evaluate_every`, and
        in a last row that a longer run would not have.
        """
        k, rows, every = self.iteration, self.settings["log_every"], self.settings["evaluate_every"]
        if k % rows:
            return k in (1, self.settings["iterations"])
        return every is None or k // every != (k - rows) // every

    def scores(self, method: str) -> dict[str, float]:
        """Those of the task's `evaluate` or `test`."""
        self.network.eval()
        found = self._scores(method, self._called)
        self.network.train()
        return found

    @property
    def _called(self) -> Callable[[Any], Tensor]:
        """The network as tasks call it: on tensors of the CPU."""
        if self.device.type == "cpu":
            return self.network
        return lambda x: self.network(x.to(self.device)).cpu()

    def _better(self, row: Mapping[str, float]) -> bool:
        """Whether the task's measure is better in this row than in the best one; NaN is not."""
        if not hasattr(self.task, "best"):
            return False
        name, choose = self.task.best
        value = row[name]
        return not math.isnan(value) and (self.best is None or choose(value, self.best.value) != self.best.value)

    @property
    def measure(self) -> list[str] | None:
        """The score that says what is best, and whether it is the least or the largest."""
        if not hasattr(self.task, "best"):
            return None
        name, choose = self.task.best
        return [name, getattr(choose, "__name__", "")]

    def keep_best(self, row: Mapping[str, float]) -> None:
        """Remember the network if this row is the best so far."""
        if self._better(row):
            network = copy.deepcopy(self.network.state_dict())
            self.best = Best(self.iteration, row[self.task.best[0]], network)

    def finish(self, row: Mapping[str, float]) -> dict[str, Any]:
        """After the last row: test the best network so far; returns its iteration and scores."""
        if hasattr(self.task, "best") and math.isnan(row[self.task.best[0]]):
            row = self.scores("evaluate")
        self.last_is_best = self.best is None or self._better(row)
        if self.last_is_best or self.best is None:
            return {"iteration": self.iteration, "test": self.scores("test")}
        last = copy.deepcopy(self.network.state_dict())
        self.network.load_state_dict(self.best.network)
        found = self.scores("test")
        self.network.load_state_dict(last)
        return {"iteration": self.best.iteration, "test": found}

    def start_row(self) -> None:
        """Start the means of the next row."""
        self.sums, self.count = {}, 0

    @property
    def parameters(self) -> int:
        """The number of trained parameters (of a trapezoid the stored ones)."""
        return sum(p.numel() for p in self.network.parameters())

    @torch.no_grad()
    def orthogonality_error(self) -> float:
        """The largest e(W) of the layer's recurrent matrices in units of n eps, NaN where there is none."""
        matrices = recurrent_matrices(self.network.layer)
        if not matrices or not all(torch.isfinite(w).all() for w in matrices):
            return float("nan")
        return max(float(orthogonality_error(w.numpy(force=True))) for w in matrices)

    @torch.no_grad()
    def _scores(self, method: str, *arguments: Any) -> dict[str, float]:
        """The result of the task's `score` (of a batch), `evaluate` or `test` (on held-out data), if defined."""
        found = getattr(self.task, method)(*arguments) if hasattr(self.task, method) else {}
        return {name: float(value) for name, value in found.items()}

    def _same(self, method: str, scores: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
        """The scores in the order of the columns; a UsageError unless they have the names that the first ones had."""
        if scores.keys() != set(names):
            given, first = (", ".join(sorted(found)) or "nothing" for found in (scores, names))
            where = self.settings.where("task")
            raise UsageError(f"{where}: {method} gave {given} after {self.iteration} updates, {first} at the start")
        return {name: scores[name] for name in names}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the scores in a row."""
        return (*self.scored, *self.held_out)


def _new(scores: Mapping[str, float], taken: Sequence[str]) -> tuple[str, ...]:
    """The names of scores, checked against the columns of metrics.csv that are taken."""
    if both := [name for name in scores if name in taken]:
        raise ValueError(f"the name {both[0]!r} is taken: {', '.join(taken)} are columns already")
    return tuple(scores)


@contextmanager
def prepared(threads: int) -> Iterator[None]:
    """Set the thread budgets of torch and the kernels, and flush denormals: decaying states otherwise slow the CPU down
    many times."""
    before, chosen = torch.get_num_threads(), _threads._chosen
    flushed = bool(np.float64(5e-324) * 1.0 == 0.0)
    torch.set_num_threads(threads)
    set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _threads._chosen = chosen
        torch.set_flush_denormal(flushed)
