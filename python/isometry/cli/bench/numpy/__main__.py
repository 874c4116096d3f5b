"""The process of the group: its arguments are the settings and the file for the entries (process.py)."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

import isometry
from isometry.cli.bench import numpy as group
from isometry.cli.bench.measure import PEAK_SIZE, Frame, Settings, measure
from isometry.cli.bench.numpy.process import INTERRUPTED

PAUSE = 5e-3


def main(arguments: str, file: str) -> None:
    settings = Settings(*json.loads(arguments))
    isometry.set_num_threads(settings.threads)
    if importlib.util.find_spec("scipy") is None:
        print("scipy is not installed: its peers are left out", flush=True)
    a = np.random.default_rng(0).standard_normal((PEAK_SIZE, PEAK_SIZE), np.float32)
    frame = Frame("numpy.matmul", lambda: a @ a, pause=PAUSE, seconds=3.0)
    found = [measure(row, frame, settings) for row in group.rows() if settings.only in row.name]
    Path(file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
