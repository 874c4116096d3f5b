"""modReLU on separate rows, which the recurrences fuse into their steps: no products, only memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import isometry
from isometry.cli.bench.numpy import formulas
from isometry.cli.bench.numpy.sides import Arrays, Side, normal, rows_of
from isometry.cli.bench.row import Row

SIZES = ((20, 190), (4000, 512))  # rows, n
CUT = -0.4  # a bias that maps a third of the entries to 0


def rows() -> Iterator[Row]:
    for count, n in SIZES:
        yield from make_rows(count, n)


def make_rows(count: int, n: int) -> Iterator[Row]:
    ours = Side("isometry", lambda a: isometry.activate(a["z"], "modrelu", bias=a["bias"]), back)
    peer = Side("numpy", lambda a: formulas.modrelu(a["z"], a["bias"], np.empty_like(a["z"])), formulas.modrelu_vjp)
    return rows_of(
        f"modrelu {count}x{n}",
        lambda rng: {"z": normal(rng, count, n), "ct": normal(rng, count, n), "bias": np.full(n, CUT, np.float32)},
        ours,
        [peer],
        (0.0, 0.0),
    )


def back(a: Arrays) -> Arrays:
    z_bar, bias_bar = isometry.activate_vjp(a["z"], "modrelu", a["ct"], bias=a["bias"])
    assert bias_bar is not None
    return {"z": z_bar, "bias": bias_bar}
