"""Running a script in a separate interpreter, under a watchdog."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def environment(**changes):
    """The same import path as this process, with some variables set, or removed if None."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONWARNINGS": "ignore"}
    env.update({k: v for k, v in changes.items() if v is not None})
    return {k: v for k, v in env.items() if changes.get(k, "") is not None}


def script(text, *args, **options):
    """Standard output of the script; an AssertionError with its error output when it fails or hangs."""
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, args)]
    return run(command, **options)


def run(command, timeout=120, check=True, cwd=None, **env):
    """As `script`, of a command."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, env=environment(**env), cwd=cwd) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as stuck:
            process.kill()
            raise AssertionError(f"no answer within {timeout} s: {command}\n{stuck.stdout}\n{stuck.stderr}") from None
    if check:
        assert process.returncode == 0, f"status {process.returncode}\n{out}\n{err}"
        return out
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def parent(pid):
    """The process that has started this one; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return None
