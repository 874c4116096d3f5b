"""Progress display of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import sys
import time
from types import TracebackType

from isometry.cli.errors import require

LINE_SECONDS = 10.0  # without a terminal: a line at least this often, and at every tenth of the iterations


class Progress:
    """Shows loss, baseline, speed and the distance of W from orthogonality; use as a context manager."""

    def __init__(self, label: str, total: int, done: int, baseline: float) -> None:
        self.label, self.total, self.done, self.baseline = label, total, done, baseline
        self.error = float("nan")
        self.bar = None
        if sys.stderr.isatty():
            self.bar = require("tqdm").tqdm(total=total, initial=done, desc=label, unit="it", **_width())
        self.started = self.last_line = time.perf_counter()
        self.first, self.shown = done, 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

    def update(self, iteration: int, loss: float, error: float | None) -> None:
        """Called after every iteration; `error` is e(W) if it has just been measured."""
        if error is not None:
            self.error = error
        if self.bar is not None:
            self.bar.set_postfix_str(f"{self._figures(loss)}", refresh=False)
            self.bar.update(iteration - self.done)
        elif error is not None and self._due(iteration):
            speed = (iteration - self.first) / max(time.perf_counter() - self.started, 1e-9)
            print(f"{self.label}  {iteration}/{self.total}  {self._figures(loss)}  {speed:.1f} it/s", flush=True)
            self.last_line = time.perf_counter()
        self.done = iteration

    def _due(self, iteration: int) -> bool:
        tenth = 10 * iteration // self.total != 10 * self.shown // self.total if self.shown else True
        due = tenth or iteration == self.total or time.perf_counter() - self.last_line >= LINE_SECONDS
        if due:
            self.shown = iteration
        return due

    def _figures(self, loss: float) -> str:
        distance = "" if math.isnan(self.error) else f" e(W) {self.error:.2g}"
        return f"loss {loss:.4g} baseline {self.baseline:.4g}{distance}"


def _width() -> dict[str, int | bool]:
    """The bar follows the terminal's width; if that is unknown (in some containers) tqdm would show nothing."""
    told = all(os.get_terminal_size(sys.stderr.fileno()))
    return {"dynamic_ncols": True} if told else {"ncols": 100, "nrows": 24}
