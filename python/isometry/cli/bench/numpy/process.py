"""The group runs in a separate process: there torch, if installed, does not lend its threads to the NumPy face, and
the number of BLAS threads, which is read when NumPy is loaded, is that of the bench.

A thread of OpenBLAS spins for 2^26 cycles after each operation, competing with whatever runs next; here for 2^20,
which exceeds the gaps between the operations of a peer, and each sample starts after a pause in which it falls
asleep.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from isometry.cli.bench.row import Settings
from isometry.cli.errors import Failure

BUDGETS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SPIN = {"OPENBLAS_THREAD_TIMEOUT": "20"}
INTERRUPTED = 130


def entries(settings: Settings) -> list[dict[str, Any]]:
    """The entries of the group's rows; the process prints them as they are measured."""
    environment = os.environ | SPIN | dict.fromkeys(BUDGETS, str(settings.threads))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "entries.json"
        command = [sys.executable, "-m", "isometry.cli.bench.numpy", json.dumps(settings), str(file)]
        status = subprocess.run(command, env=environment, check=False).returncode
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if status:
            raise Failure(f"bench: the process of the group numpy ended with status {status}")
        return json.loads(file.read_text(encoding="utf-8"))
