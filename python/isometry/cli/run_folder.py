"""The folder of a run: config.toml, metrics.csv, curves.png, checkpoint.safetensors.

metrics.csv has one row for the first iteration, every `log_every`-th and the last: iteration, loss of that batch,
baseline, seconds since the start, orthogonality_error (largest e(W) in units of n eps, nan for a network without a
recurrent matrix), then the task's scores. Numbers are written so that they are read back exactly.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from isometry.cli.errors import Failure, UsageError

COLUMNS = ("iteration", "loss", "baseline", "seconds", "orthogonality_error")


class RunFolder:
    """The paths of a run, and its metrics while it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.metrics = path / "metrics.csv"
        self.curves = path / "curves.png"
        self.checkpoint = path / "checkpoint.safetensors"

    @classmethod
    def create(cls, label: str, out: str | None) -> RunFolder:
        """A new folder: `out`, or runs/<label>, runs/<label>-2, ..."""
        path = Path(out) if out is not None else _free(Path("runs") / label)
        if path.exists() and (not path.is_dir() or (path / "config.toml").exists()):
            reason = "holds a run already; --resume goes on with it" if path.is_dir() else "is not a folder"
            raise UsageError(f"--out: {path} {reason}")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Failure(f"--out: {path}: {error.strerror or error}") from error
        return cls(path)

    def write_config(self, text: str) -> None:
        self.config.write_text(text, encoding="utf-8")

    def start_metrics(self, scores: Sequence[str]) -> None:
        with open(self.metrics, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([*COLUMNS, *scores])

    def append(self, row: Sequence[float]) -> None:
        iteration, loss, baseline, seconds, *rest = row
        with open(self.metrics, "a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([int(iteration), repr(loss), repr(baseline), f"{seconds:.3f}", *map(repr, rest)])

    def rows(self) -> dict[str, list[float]]:
        """The columns of metrics.csv."""
        with open(self.metrics, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            names = next(reader)
            table = [[float(cell) for cell in row] for row in reader if len(row) == len(names)]
        return {name: [row[k] for row in table] for k, name in enumerate(names)}

    def rewind(self, iteration: int, log_every: int) -> None:
        """Keep what an uninterrupted run would have logged up to `iteration`: drop later rows and an off-schedule
        last one."""
        with open(self.metrics, newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        whole = (row for row in rows if len(row) == len(header))
        kept = [row for row in whole if int(row[0]) <= iteration and (row[0] == "1" or int(row[0]) % log_every == 0)]
        with open(self.metrics, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *kept])


def _free(path: Path) -> Path:
    """The path itself or the first free one of path-2, path-3, ..."""
    candidate, k = path, 1
    while candidate.exists():
        k += 1
        candidate = path.with_name(f"{path.name}-{k}")
    return candidate
