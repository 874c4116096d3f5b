"""The folder of a run: config.toml, metrics.csv, curves.png, checkpoint.safetensors, scores.toml.

metrics.csv has a row for the first iteration, every `log_every`-th and the last: iteration; loss, the mean of the
batches since the row before; baseline; seconds since the start; orthogonality_error, the largest e(W) in units of n eps
(nan for a network without a recurrent matrix); then the task's scores, which are means too, but for those on held-out
data, nan in rows that did not look at them. Numbers are written so that they read back exactly.

scores.toml is written at the end: the iteration whose network is the best on held-out data, its scores on the test
data, and the baselines.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isometry.cli.errors import Failure, UsageError

OWN = ("iteration", "loss", "baseline", "seconds", "orthogonality_error")
COLUMNS = len(OWN)  # those that every run has, before the task's scores


class RunFolder:
    """The paths of a run, and its metrics while it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.metrics = path / "metrics.csv"
        self.curves = path / "curves.png"
        self.checkpoint = path / "checkpoint.safetensors"
        self.scores = path / "scores.toml"

    @classmethod
    def create(cls, label: str, out: str | None) -> RunFolder:
        """A new folder: `out`, or runs/<label>, runs/<label>-2, ..."""
        path = Path(out) if out is not None else _free(Path("runs") / label)
        if path.exists() and (not path.is_dir() or (path / "config.toml").exists()):
            reason = "holds a run already; --resume goes on with it" if path.is_dir() else "is not a folder"
            raise UsageError(f"--out {path} {reason}")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Failure(f"--out {path}: {error.strerror or error}") from error
        for name in ("metrics.csv", "scores.toml"):
            (path / name).unlink(missing_ok=True)
        return cls(path)

    def append(self, row: Mapping[str, float]) -> None:
        """Add a row; the first one writes the names."""
        texts = {name: repr(float(value)) for name, value in row.items()}
        texts |= {"iteration": str(row["iteration"]), "seconds": f"{row['seconds']:.3f}"}
        with open(self.metrics, "a", newline="", encoding="utf-8") as file:
            lines = [list(texts)] if file.tell() == 0 else []
            csv.writer(file).writerows([*lines, list(texts.values())])

    def write_scores(self, scores: Mapping[str, Any]) -> None:
        """What `Session.finish` found."""
        import tomli_w

        self.scores.write_text(tomli_w.dumps(scores), encoding="utf-8")

    def read_scores(self) -> dict[str, Any]:
        """What `write_scores` wrote; nothing before the end of the run."""
        return tomllib.loads(self.scores.read_text(encoding="utf-8")) if self.scores.is_file() else {}

    def columns(self) -> dict[str, list[float]]:
        """The columns of metrics.csv."""
        names, rows = self._rows()
        return {name: [float(row[k]) for row in rows] for k, name in enumerate(names)}

    def rewind(self, iteration: int, log_every: int) -> None:
        """Keep what an uninterrupted run would have logged up to `iteration`: drop later rows and an odd last one."""
        names, rows = self._rows()
        kept = [row for row in rows if int(row[0]) <= iteration and (row[0] == "1" or int(row[0]) % log_every == 0)]
        with open(self.metrics, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([names, *kept] if kept else [])
        self.scores.unlink(missing_ok=True)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        """The names and the complete rows; no file, as before the first row, has none."""
        if not self.metrics.is_file():
            return [], []
        with open(self.metrics, newline="", encoding="utf-8") as file:
            names, *rows = list(csv.reader(file)) or [[]]
        return names, [row for row in rows if len(row) == len(names)]


def _free(path: Path) -> Path:
    """The path itself or the first free one of path-2, path-3, ..."""
    candidate, k = path, 1
    while candidate.exists():
        k += 1
        candidate = path.with_name(f"{path.name}-{k}")
    return candidate
