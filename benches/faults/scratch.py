"""A copy of the tracked files in which faults are planted, with a build of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from faults.plant import ROOT

PLACE = (ROOT / "target/faults").resolve()
EXTENSION = "--release --locked -p isometry-py --features isometry-py/gpu".split()  # noqa: SIM905


def made(texts: Mapping[str, str]) -> Path:
    """The sources as they are here, some with other texts; what is the same as last time is not built again."""
    root = PLACE / "checkout"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    names = [name for name in filter(None, listed.split("\0")) if (ROOT / name).is_file()]
    for name in names:
        target, own = root / name, texts.get(name)
        content = (ROOT / name).read_bytes() if own is None else own.encode()
        if not (target.exists() and target.read_bytes() == content):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for path in [*root.glob("tests/**/*.py"), *root.glob("*/**/*.rs")]:
        if path.relative_to(root).as_posix() not in names:
            path.unlink()
    return root


def environment(number: int = 0) -> dict[str, str]:
    own = {
        "CARGO_TARGET_DIR": str(PLACE / "target"),
        "PYO3_PYTHON": sys.executable,
        "PYTHONPATH": str(PLACE / "checkout/python"),
    }
    return {**os.environ, **own, "ISOMETRY_PLANTED": str(number), "PYTHONDONTWRITEBYTECODE": "1"}
