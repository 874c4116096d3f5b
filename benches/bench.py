"""`isometry bench` with the groups that only developers need; the same options.

    python benches/bench.py [GROUP] [--quick] [--threads N] [--only TEXT] [--alone] [--json FILE]

compiled   operators and layers inside `torch.compile`, against the graph of their formula, or the eager layer
training   a whole training step of a scoRNN on the copying problem
memory     what a layer holds between forward and backward, and its peak
overhead   a small call beside an empty autograd.Function
numpy      the NumPy face beside NumPy and SciPy; needs no torch
qwen       a training step of a Qwen3.5 of the package transformers, with its functions and with ours; where it is named
gpu        backend="gpu": arrays that stay on the GPU, the same with copies, the CPU, and torch; runs where it is named

Without GROUP it runs those of the package too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from isometry.cli import main as isometry
from isometry.cli.bench.groups import APART, GROUPS

ROWS = {name: (f"rows.{name}:rows",) for name in ("compiled", "training", "memory", "overhead", "qwen", "gpu")}
ENTRIES = {"numpy": "rows.numpy.process:entries"}
DEVELOPERS = (*ROWS, *ENTRIES)
NAMED = ("qwen", "gpu")  # need the package transformers, and an adapter


def main(arguments: Sequence[str]) -> int:
    """Run the bench with the developers' groups; returns the exit status."""
    folder = str(Path(__file__).resolve().parent)
    added = {name: rows for name, rows in ROWS.items() if name not in NAMED or name in arguments}
    with patch.dict(GROUPS, added), patch.dict(APART, ENTRIES), patch.object(sys, "path", [folder, *sys.path]):
        return isometry(["bench", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
