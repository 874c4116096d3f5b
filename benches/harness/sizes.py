"""The sizes that the rows of both faces share, with the bar and the goal of a row of torch."""

from typing import NamedTuple


class Sequences(NamedTuple):
    """A recurrence of the papers; m = 0 is the scoRNN (Cayley, modReLU), else m reflections and a leaky ReLU."""

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
        """How the core computes it; written out, because the bench also measures other builds of the package."""
        return "factored" if 0 < 5 * self.m < 2 * self.n else "dense"


RECURRENCES = (
    Sequences("scornn-copy", 190, 0, 20, 1020, 10),
    Sequences("scornn-mnist", 170, 0, 50, 784, 1),
    Sequences("scornn-mnist512", 512, 0, 50, 784, 1),
    Sequences("ornn-add", 128, 16, 50, 400, 2),
    Sequences("ornn-mnist", 256, 32, 1, 784, 1),
    Sequences("ornn-ptb", 512, 510, 1, 118, 49),
)
LONGEST_FACTORS = 64  # of a loop over steps through the factors
REFLECTIONS = {(512, 512): (1.4, 1.7), (1024, 1024): (1.4, 1.7), (128, 16): (2.0, 3.0), (256, 32): (1.7, 2.4)}  # n, m
ROWS = {  # n, m, rows
    (128, 16, 50): (2.0, 3.5),
    (256, 32, 1): (2.0, 3.5),
    (512, 128, 64): (1.5, 2.3),
    (1024, 256, 256): (1.2, 1.4),
}
CAYLEY = {190: (2.0, 3.5), 512: (2.0, 3.0), 1024: (2.0, 2.5)}  # n
BATCHES = {  # matrices, n
    (128, 32): (6.0, 10.0),
    (64, 64): (6.0, 10.0),
    (512, 8): (6.0, 10.0),
    (4096, 4): (6.0, 10.0),
    (8192, 16): (6.0, 25.0),
}
# a solve adds about cond(I + A) to the error of the product; here cond is below 4
SOLVED = (2e-5, 4e-4)
