"""Speed against torch: every row builds both sides in one process, checks values and gradients against float64,
then takes alternating runs and prints the ratio of the medians.

Both sides run forward and backward in float32 with torch's autograd and the same loss around them. The peer of a row is
the fastest fair variant in torch. "share" is the part of the rate of torch.mm (n = 512, same process, same moment) that
our side reaches on the row's own flops. A row whose values are wrong is reported and never timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from isometry.cli.errors import require

if TYPE_CHECKING:
    from isometry.cli.bench.row import Figure, Row

# the groups, each a module here with a function rows()
GROUPS = ("recurrence", "householder", "apply", "cayley", "batches", "small", "training", "memory")


def names() -> tuple[str, ...]:
    return GROUPS


def run(options: argparse.Namespace) -> int:
    """Carry out `isometry bench` and return the exit status: 1 if some value is wrong."""
    require("torch", command="bench")
    import isometry
    from isometry.cli.bench import report
    from isometry.cli.session import prepare

    prepare(options.threads or isometry.get_num_threads())
    groups = [options.group] if options.group else list(GROUPS)
    makers: list[Callable[[], Iterator[Row | Figure]]] = [
        import_module(f"isometry.cli.bench.{name}").rows for name in groups
    ]
    return report.run(groups, makers, quick=options.quick, json_file=options.json)
