"""Running a script in a separate interpreter, under a watchdog."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(**changes):
    """The same import path as this process, with some variables set, or removed if None."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONWARNINGS": "ignore"}
    env.update({k: v for k, v in changes.items() if v is not None})
    return {k: v for k, v in env.items() if changes.get(k, "") is not None}


def script(text, *args, timeout=120, check=True, **env):
    """Standard output of the script; an AssertionError with its error output when it fails or hangs."""
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, args)]
    return run(command, timeout=timeout, check=check, **env)


def run(command, timeout=120, check=True, cwd=None, **env):
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=environment(**env), cwd=cwd, check=False
        )
    except subprocess.TimeoutExpired as stuck:
        raise AssertionError(f"no answer within {timeout} s: {stuck.cmd}\n{stuck.stdout}\n{stuck.stderr}") from None
    if check:
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
    return done


def parent(pid):
    """The process that has started this one; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return None
