"""The workloads of both faces: the recurrences of the papers and the sizes of the operators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """m = 0 is the scoRNN (Cayley, modReLU), else m reflections and a leaky ReLU."""

    name: str
    n: int
    m: int
    batch: int
    steps: int
    inputs: int

    def __str__(self) -> str:
        return f"{self.name} n{self.n} m{self.m} B{self.batch} T{self.steps}"

    @property
    def route(self) -> str:
        """How the core serves it; written out, because the bench also measures other builds of the package."""
        return "factored" if 0 < 5 * self.m < 2 * self.n else "dense"


RECURRENCES = (
    Workload("scornn-copy", 190, 0, 20, 1020, 10),
    Workload("scornn-mnist", 170, 0, 50, 784, 1),
    Workload("scornn-mnist512", 512, 0, 50, 784, 1),
    Workload("ornn-add", 128, 16, 50, 400, 2),
    Workload("ornn-mnist", 256, 32, 1, 784, 1),
    Workload("ornn-ptb", 512, 510, 1, 118, 49),
)
REFLECTIONS = ((512, 512), (1024, 1024), (128, 16), (256, 32))  # n, m of a matrix
ROWS = ((128, 16, 50), (256, 32, 1), (512, 128, 64), (1024, 256, 256))  # n, m, and the number of rows
CAYLEY = (190, 512, 1024)
BATCHES = ((128, 32), (64, 64), (512, 8), (4096, 4), (8192, 16))  # matrices, n
