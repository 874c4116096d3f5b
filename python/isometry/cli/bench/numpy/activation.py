"""modReLU on separate rows, which the recurrences fuse into their steps: no products, only memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import isometry
from isometry.cli.bench.numpy import formulas
from isometry.cli.bench.numpy.sides import Arrays, Problem, Side, normal, rows_of
from isometry.cli.bench.row import Row

SIZES = ((20, 190), (4000, 512))  # rows, n
CUT = -0.4  # a bias that maps a third of the entries to 0


def rows() -> Iterator[Row]:
    for count, n in SIZES:
        yield from make_rows(count, n)


def make_rows(count: int, n: int) -> Iterator[Row]:
    def draw(rng: np.random.Generator) -> Arrays:
        return {"z": normal(rng, count, n), "ct": normal(rng, count, n), "bias": np.full(n, CUT, np.float32)}

    ours = Side("isometry", lambda a: isometry.activate(a["z"], "modrelu", bias=a["bias"]), back)
    peer = Side("numpy", lambda a: formulas.modrelu(a["z"], a["bias"], np.empty_like(a["z"])), numpy_back)
    return rows_of(f"modrelu {count}x{n}", Problem(draw), ours, [peer], (0.0, 0.0))


def back(a: Arrays) -> Arrays:
    z_bar, bias_bar = isometry.activate_vjp(a["z"], "modrelu", a["ct"], bias=a["bias"])
    assert bias_bar is not None
    return {"z": z_bar, "bias": bias_bar}


def numpy_back(a: Arrays) -> Arrays:
    z_bar, bias_bar = formulas.modrelu_vjp(a["z"], a["ct"], a["bias"])
    return {"z": z_bar, "bias": bias_bar}
