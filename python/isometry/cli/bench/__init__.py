"""Speed against torch: every row builds both sides in one process, checks values and gradients against float64,
then takes alternating runs and prints the ratio of the medians.

Both sides run forward and backward in float32 with torch's autograd and the same loss around them. The peer of a row is
the fastest fair variant in torch. "share" is the part of the rate of torch.mm (n = 512, same process, same moment) that
our side reaches on the row's own flops. A row whose values are wrong is reported and never timed.

The group numpy needs no torch: values and vector-Jacobian products of the NumPy face, a row each, beside NumPy and,
where it is installed, SciPy; "share" is that of numpy.matmul.
"""

from __future__ import annotations

import argparse

from isometry.cli.errors import require

# the groups, each a module here with a function rows()
GROUPS = ("recurrence", "gru", "householder", "apply", "cayley", "batches", "small", "training", "memory", "numpy")


def names() -> tuple[str, ...]:
    return GROUPS


def run(options: argparse.Namespace) -> int:
    """Carry out `isometry bench` and return the exit status: 1 if some value is wrong."""
    import isometry
    from isometry.cli.bench import report
    from isometry.cli.bench.measure import Settings

    groups = [options.group] if options.group else list(GROUPS)
    settings = Settings(options.threads or isometry.get_num_threads(), options.quick, options.alone, options.only)
    if groups != ["numpy"]:
        require("torch", command="bench")
        from isometry.cli.session import prepare

        prepare(settings.threads)
    return report.run(groups, settings, options.json)
