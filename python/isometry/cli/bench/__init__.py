"""Speed against torch: every row builds both sides in one process, checks values and gradients against float64, then
takes alternating runs and prints the ratio of the medians.

Both sides run forward and backward in float32 with torch's autograd, from the same gradient of y. The peer of a row is
the fastest fair variant in torch. "share" is the rate of our side on the row's own flops relative to that of torch.mm
(n = 512, same process, same time). A row with wrong values is reported and not timed.
"""

from __future__ import annotations

import argparse

from isometry.cli.bench.groups import APART, names
from isometry.cli.errors import require


def run(options: argparse.Namespace) -> int:
    """Run `isometry bench` and return the exit status: 1 if some value is wrong."""
    import isometry
    from isometry.cli.bench import report
    from isometry.cli.bench.row import Settings

    groups = [options.group] if options.group else list(names())
    settings = Settings(options.threads or isometry.get_num_threads(), options.quick, options.alone, options.only)
    if set(groups) <= set(APART):
        return report.run(groups, settings, options.json)
    require(["torch"], "bench", extra="torch")
    from isometry.cli.session import prepared

    with prepared(settings.threads):
        return report.run(groups, settings, options.json)
