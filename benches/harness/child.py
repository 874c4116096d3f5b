"""A module of the benches in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BENCHES = str(Path(__file__).resolve().parents[1])


def run(
    module: str, *arguments: str, variables: Mapping[str, str] | None = None, **keywords: Any
) -> subprocess.CompletedProcess[str]:
    """Run `python -m module` with these arguments, further variables of the environment, and keywords of
    subprocess.run.
    """
    path = os.pathsep.join([BENCHES, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path, **(variables or {})}, **keywords)
