"""The folder of a run: config.toml, metrics.csv, curves.png, checkpoint.safetensors, scores.toml.

metrics.csv has a row for the first iteration, every `log_every`-th and the last: iteration; loss, the mean of the
batches since the row before; baseline; seconds since the start; orthogonality_error, the largest e(W) in units of n eps
(nan for a network without a recurrent matrix); then the task's scores, means too, except for those on held-out data,
which are nan in rows without an evaluation. Numbers are written so that they read back exactly.

scores.toml is written at the end: the iteration whose network is the best on held-out data, its scores on the test
data, and the baselines. While a process trains the run it holds a lock on the file .lock.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from isometry.cli.errors import Failure, UsageError
from isometry.cli.files import made, named, text_of, toml_of, write_text
from isometry.cli.lock import locked

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
        self._names: list[str] = []  # of the columns, from the first row on

    @classmethod
    @contextmanager
    def create(cls, label: str, out: str | None) -> Iterator[RunFolder]:
        """A new folder, `out`, or runs/<label>, runs/<label>-2, ..., locked."""
        with _new(Path("runs") / label) if out is None else _given(Path(out)) as path:
            folder = cls(path)
            with folder.locked():
                folder.refuse_files()  # of a process that had the lock
                try:
                    yield folder
                except Exception:
                    if not folder.begun:  # nothing to go on with
                        folder.config.unlink(missing_ok=True)
                    raise

    def refuse_files(self) -> None:
        """A UsageError if a new run would replace something here."""
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise UsageError(f"--out {self.path} is not a folder")
        if os.path.lexists(self.config):
            raise UsageError(f"--out {self.path} holds a run already; --resume goes on with it")
        files = [self.config, *self._results]
        files += [file.with_suffix(".partial") for file in files]
        there = [file.name for file in files if os.path.lexists(file) and not _cut_settings(file)]
        if there:
            raise UsageError(f"--out {self.path} holds {', '.join(there)} of something else (no config.toml)")

    @property
    def _results(self) -> list[Path]:
        return [self.metrics, self.curves, self.checkpoint, self.scores]

    @property
    def begun(self) -> bool:
        """Whether the run has written more than its settings."""
        return any(map(os.path.lexists, self._results))

    def locked(self) -> AbstractContextManager[None]:
        """The folder for this process alone; a Failure while another one has it."""
        return locked(self.path, "another process trains this run")

    def append(self, row: Mapping[str, float]) -> None:
        """Add a row, by its names; the first one writes them."""
        texts = {name: repr(float(value)) for name, value in row.items()}
        texts |= {"iteration": str(row["iteration"]), "seconds": f"{row['seconds']:.3f}"}
        self._names = self._names or list(texts)
        with named(self.metrics), open(self.metrics, "a", newline="", encoding="utf-8") as file:
            lines = [self._names] if file.tell() == 0 else []
            csv.writer(file).writerows([*lines, [texts[name] for name in self._names]])

    def write_scores(self, scores: Mapping[str, Any]) -> None:
        """Write the result of `Session.finish`."""
        import tomli_w

        write_text(self.scores, tomli_w.dumps(scores))

    def read_scores(self) -> dict[str, Any]:
        """Read what `write_scores` wrote; empty before the end of the run."""
        if not self.scores.exists():
            return {}
        scores = toml_of(self.scores)
        if scores.keys() != {"iteration", "test", "baselines"}:
            raise Failure(f"{self.scores} must hold iteration, test and baselines, not {list(scores)}")
        for name, value in scores.items():
            found = {name: value} if name == "iteration" else value
            if not isinstance(found, dict) or {type(number) for number in found.values()} - {int, float}:
                raise Failure(f"{self.scores}: {name} = {value!r}: not of numbers")
        return scores

    def columns(self) -> dict[str, list[float]]:
        """The columns of metrics.csv."""
        names, rows = self._rows()
        return {name: [float(row[k]) for row in rows] for k, name in enumerate(names)}

    def refuse_scores(self, scores: Sequence[str], where: str) -> None:
        """A UsageError unless the task gives the scores that the rows have, in any order."""
        names, _ = self._rows()
        there = names[COLUMNS:]
        if names and set(there) != set(scores):
            now, before = (", ".join(sorted(found)) or "none" for found in (scores, there))
            raise UsageError(f"{where}: its scores are {now}; {self.metrics} has {before}")

    def rewind(self, iteration: int, log_every: int) -> None:
        """Keep what an uninterrupted run would have logged up to `iteration`: drop later rows and an odd last one."""
        names, rows = self._rows()
        kept = [row for row in rows if int(row[0]) <= iteration and (row[0] == "1" or int(row[0]) % log_every == 0)]
        text = io.StringIO(newline="")
        self._names = names if kept else []
        csv.writer(text).writerows([names, *kept] if kept else [])
        write_text(self.metrics, text.getvalue())
        self.scores.unlink(missing_ok=True)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        """The names and the complete rows, checked; empty without a file, as before the first row."""
        text = text_of(self.metrics) if self.metrics.exists() else ""
        text = text[: text.rfind("\n") + 1]  # a process that was killed may leave half a row
        try:
            names, *rows = list(csv.reader(io.StringIO(text, newline=""), strict=True)) or [[]]
        except csv.Error as error:
            self._damaged(1, str(error))
        if text and (tuple(names[:COLUMNS]) != OWN or len(set(names)) != len(names)):
            self._damaged(1, f"begins with the columns {', '.join(names)}, expected {', '.join(OWN)}, ...")
        last = 0
        for k, row in enumerate(rows, 2):
            if len(row) != len(names):
                self._damaged(k, f"has {len(row)} columns, expected {len(names)}")
            try:
                for value in row:
                    float(value)
                iteration = int(row[0])
            except ValueError as error:
                self._damaged(k, str(error))
            if not last < iteration < 2**53:
                self._damaged(k, f"is of iteration {iteration}, after {last}")
            last = iteration
        return names, rows

    def _damaged(self, line: int, what: str) -> NoReturn:
        raise Failure(f"{self.metrics} is damaged: line {line}: {what}")


def _cut_settings(file: Path) -> bool:
    """Whether a run was killed here while it wrote its first file, the settings."""
    if file.name != "config.partial" or file.is_symlink() or not file.is_file():
        return False
    return file.read_bytes()[:10] in (b"", b"isometry =")


@contextmanager
def _given(path: Path) -> Iterator[Path]:
    """The folder of --out, made if it does not exist."""
    RunFolder(path).refuse_files()
    with made(path):
        yield path


@contextmanager
def _new(path: Path) -> Iterator[Path]:
    """Make the folder, or the first of path-2, path-3, ... that does not exist."""
    with made(path.parent):
        for k in count(1):
            candidate = path if k == 1 else path.with_name(f"{path.name}-{k}")
            try:
                candidate.mkdir()
                break
            except OSError as error:
                if not os.path.lexists(candidate):
                    raise Failure(f"{candidate}: {error.strerror or error}") from error
        try:
            yield candidate
        finally:
            with suppress(OSError):  # not empty: the run has begun
                candidate.rmdir()
