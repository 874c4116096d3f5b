"""The tasks of the command line: batches, a loss with a baseline, and scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from isometry.cli.settings import Settings


class Source:
    """A task with all its settings: draws batches and evaluates the readout.

    inputs and outputs are the feature counts, `last_only` says whether the readout reads the last state only,
    `baseline` is the loss of the best guess without memory.
    """

    inputs: int
    outputs: int
    last_only: bool
    baseline: float
    scores: tuple[str, ...] = ()

    def draw(self, rng: Generator) -> tuple[Tensor, Tensor]:
        """A fresh batch x (T, B, inputs) and its targets; every random number comes from rng."""
        raise NotImplementedError

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError

    def score(self, network: Callable[[Tensor], Tensor], values: Tensor, target: Tensor) -> list[float]:  # noqa: ARG002
        """The values of `scores`, from the last batch or from held-out data; draws no random numbers."""
        return []


class Task:
    """One entry of the registry; a subclass is one file."""

    name: ClassVar[str]
    extras: ClassVar[tuple[str, ...]] = ()  # modules needed beyond those of every training
    reads_file: ClassVar[bool] = False

    def defaults(self) -> dict[str, Any]:
        """length (None if the task has none), batch and iterations."""
        raise NotImplementedError

    def keywords(self) -> dict[str, Any]:
        """The task's own keywords with their default values; `--set` accepts these names."""
        return {}

    def open(self, settings: Settings) -> Source:
        raise NotImplementedError
