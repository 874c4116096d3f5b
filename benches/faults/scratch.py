"""A copy of the tracked files in which faults are planted, with a build of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from faults.plant import ROOT

PLACE = ROOT / "target/faults"
EXTENSION = "--release --locked -p isometry-py --features isometry-py/gpu".split()  # noqa: SIM905


def made() -> Path:
    """The sources as they are here, in place of those of the last time; what has not changed is not built again."""
    root = PLACE / "checkout"
    root.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, root / name
        if source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return root


def environment(number: int = 0) -> dict[str, str]:
    own = {
        "CARGO_TARGET_DIR": str(PLACE / "target"),
        "PYO3_PYTHON": sys.executable,
        "PYTHONPATH": str(PLACE / "checkout/python"),
    }
    return {**os.environ, **own, "ISOMETRY_PLANTED": str(number), "PYTHONDONTWRITEBYTECODE": "1"}
