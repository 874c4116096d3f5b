"""`isometry bench` with the groups that only developers need; the same options.

    python benches/bench.py [GROUP] [--quick] [--threads N] [--only TEXT] [--alone] [--json FILE]

compiled   operators and layers inside `torch.compile`, against the graph of their formula, or the eager layer
training   a whole training step of a scoRNN on the copying problem
memory     what a layer holds between forward and backward, and its peak
overhead   a small call beside an empty autograd.Function
gpu        backend="gpu": arrays that stay on the GPU, the same with copies, the CPU, and torch; runs where it is named

Without GROUP it runs those of the package too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from isometry.cli import main as isometry
from isometry.cli.bench.groups import GROUPS

DEVELOPERS = {name: (f"rows.{name}:rows",) for name in ("compiled", "training", "memory", "overhead", "gpu")}
NAMED = ("gpu",)  # needs an adapter


def main(arguments: Sequence[str]) -> int:
    """Run the bench with the developers' groups; returns the exit status."""
    folder, before = str(Path(__file__).resolve().parent), dict(GROUPS)
    GROUPS.update({name: rows for name, rows in DEVELOPERS.items() if name not in NAMED or name in arguments})
    sys.path.insert(0, folder)
    try:
        return isometry(["bench", *arguments])
    finally:
        sys.path.remove(folder)
        GROUPS.clear()
        GROUPS.update(before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
