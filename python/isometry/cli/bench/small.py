"""One small call, with its operator rebuilt: the overhead of the path through Python."""

from __future__ import annotations

from collections.abc import Iterator

from isometry.cli.bench import apply, cayley
from isometry.cli.bench.row import Row


def rows() -> Iterator[Row]:
    yield apply.make_row("small householder 8/2/B1", 8, 2, 1, 1.0, 2.0)
    yield cayley.make_row("small cayley 8", (8, 8), None, 1.0, 2.0)
