"""The process of the group: its arguments are the settings and the file for the entries (process.py)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import isometry
from isometry.cli.bench.numpy.process import INTERRUPTED
from isometry.cli.bench.numpy.sides import SCIPY
from isometry.cli.bench.report import timed
from isometry.cli.bench.row import PEAK_SIZE, Frame, Settings


def main(arguments: str, file: str) -> None:
    settings = Settings(*json.loads(arguments))
    isometry.set_num_threads(settings.threads)
    if not SCIPY:
        print("scipy is not installed: its peers are left out", flush=True)
    a = np.random.default_rng(0).standard_normal((PEAK_SIZE, PEAK_SIZE), np.float32)
    found = timed("numpy", Frame("numpy.matmul", lambda: a @ a, pause=5e-3, seconds=3.0), settings)
    Path(file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
