"""Batches of small Cayley transforms (adapters, photonic meshes), forward and backward: 6 n^3 flops a matrix."""

from __future__ import annotations

from collections.abc import Iterator

from isometry.cli.bench.cayley import make_row
from isometry.cli.bench.row import Row

SIZES = {  # (matrices, n): bar and goal
    (128, 32): (6.0, 10.0),
    (64, 64): (6.0, 10.0),
    (512, 8): (6.0, 10.0),
    (4096, 4): (6.0, 10.0),
    (8192, 16): (6.0, 25.0),
}


def rows() -> Iterator[Row]:
    for (count, n), (bar, goal) in SIZES.items():
        yield make_row(f"cayley batch {count}x{n}", (count, n, n), None, bar, goal)
