"""The NumPy face without torch: values and vector-Jacobian products (VJPs), a row each, against NumPy and SciPy.

A peer's VJP uses the same formulas as ours, written with the products and solves of its library; the arrays of both
sides are C-ordered. Without SciPy its peers are left out. "share" is relative to numpy.matmul.

The group runs in a separate process: there torch, if installed, does not lend its threads to the NumPy face, and the
number of BLAS threads, which is read when NumPy is loaded, is that of the bench. A thread of OpenBLAS spins for 2^26
cycles after each operation, competing with whatever runs next; here for 2^20, which exceeds the gaps between the
operations of a peer, and each sample starts after a pause in which it falls asleep.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import isometry
from harness.child import run
from harness.row import PEAK_SIZE, Frame, Settings
from isometry.cli.errors import INTERRUPTED, Failure
from rows.numpy import operators, recurrence, rotations
from rows.numpy.sides import SCIPY

BUDGETS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SPIN = {"OPENBLAS_THREAD_TIMEOUT": "20"}


def entries(settings: Settings) -> list[dict[str, Any]]:
    """The entries of the group's rows; the process prints them as they are measured."""
    variables = SPIN | dict.fromkeys(BUDGETS, str(settings.threads))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "entries.json"
        arguments = (json.dumps(settings), str(file))
        status = run("rows.numpy.process", *arguments, variables=variables, check=False).returncode
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if status:
            raise Failure(f"the process of the group numpy ended with status {status}")
        return json.loads(file.read_text(encoding="utf-8"))


def child(arguments: str, file: str) -> None:
    """The process: its arguments are the settings and the file for the entries."""
    settings = Settings(*json.loads(arguments))
    isometry.set_num_threads(settings.threads)
    if not SCIPY:
        print("scipy is not installed: its peers are left out", flush=True)
    a = np.random.default_rng(0).standard_normal((PEAK_SIZE, PEAK_SIZE), np.float32)
    frame = Frame("numpy.matmul", lambda: a @ a, pause=5e-3, seconds=3.0)
    rows = (row for module in (operators, rotations, recurrence) for row in module.rows() if settings.only in row.name)
    Path(file).write_text(json.dumps([row.measured(frame, settings) for row in rows]), encoding="utf-8")


if __name__ == "__main__":
    try:
        child(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
