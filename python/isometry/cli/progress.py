"""Progress display of a run: a bar on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections.abc import Mapping
from typing import Self

LINE_SECONDS = 10.0  # without a terminal: a line at least this often, and after every tenth of the run
#: Scores come first, since a narrow terminal cuts the end of the line.
BAR = "{percentage:3.0f}%{postfix} {rate_fmt} {remaining} {n_fmt}/{total_fmt} {desc} |{bar}|"


class Progress:
    """Shows loss, baseline, e(W), scores and speed, as the last row has them; use as a context manager."""

    def __init__(self, label: str, total: int, done: int, *, shown: bool = True) -> None:
        self.label, self.total, self.done = label, total, done
        self.bar = None
        if shown and sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=total, initial=done, desc=label, unit="it", bar_format=BAR, **_width())
        self.started = self.last_line = time.perf_counter()
        self.first, self.shown = done, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def update(self, iteration: int, row: Mapping[str, float] | None) -> None:
        """After every iteration, with the row of metrics.csv where one has just been written."""
        if self.bar is not None:
            if row is not None:
                self.bar.set_postfix_str(figures(scores_first(row)), refresh=False)
            self.bar.update(iteration - self.done)
        elif row is not None and self._due(iteration):
            speed = (iteration - self.first) / max(time.perf_counter() - self.started, 1e-9)
            print(f"{self.label}  {iteration}/{self.total}  {figures(row)}  {speed:.1f} it/s", flush=True)
            self.last_line = time.perf_counter()
        self.done = iteration

    def _due(self, iteration: int) -> bool:
        tenth = 10 * iteration // self.total != 10 * self.shown // self.total if self.shown else True
        due = tenth or iteration == self.total or time.perf_counter() - self.last_line >= LINE_SECONDS
        if due:
            self.shown = iteration
        return due


def scores_first(row: Mapping[str, float]) -> dict[str, float]:
    """The row with what every task has behind the scores of this one."""
    return dict(sorted(row.items(), key=lambda item: item[0] in ("loss", "baseline", "orthogonality_error")))


def figures(row: Mapping[str, float]) -> str:
    """The figures of a row that are present."""
    shown = {name: value for name, value in row.items() if name not in ("iteration", "seconds") and value == value}
    return " ".join(f"{'e(W)' if name == 'orthogonality_error' else name} {value:.3g}" for name, value in shown.items())


def _width() -> dict[str, int | bool]:
    """The bar follows the terminal's width; if that is unknown (in some containers) tqdm would show nothing."""
    told = all(os.get_terminal_size(sys.stderr.fileno()))
    return {"dynamic_ncols": True} if told else {"ncols": 110, "nrows": 24}
