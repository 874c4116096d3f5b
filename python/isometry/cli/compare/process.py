"""The process of a run, as seen by the one that starts it; what the process does is `attended`.

It has a session of its own, or on Windows a group, so that a terminal's ctrl-C does not reach it: a run that received
it twice would end without its checkpoint. It is told through its standard input, of which nothing is lost, as a signal
would be that came before the process handles it.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

from isometry.cli.compare.plan import Planned

SIZE = 4  # bytes before the run, the number of its bytes
MARK = "isometry: "  # the start of a failed command's message


def start(run: Planned, threads: int, cwd: str | None = None, patience: float = 0.0) -> subprocess.Popen[str]:
    """Start or continue the run; for so many seconds it waits for another process that trains it to end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "isometry.cli.compare.attended", run.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",  # a run may print anything
        cwd=cwd,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    data = pickle.dumps((run, threads, patience))
    _write(process, len(data).to_bytes(SIZE) + data)
    return process


def follow(name: str, process: subprocess.Popen[str], show: Callable[[str], object]) -> str:
    """Show the output of the run until it ends; returns what went wrong, "" if nothing did."""
    message = ""
    with process:
        for line in process.stdout or ():
            text = line.rstrip()
            failed = text.startswith(MARK) and not text.startswith(MARK + "warning")
            message = text.removeprefix(MARK) if failed else message
            show(f"{name}: {text.removeprefix(MARK)}" if text.startswith(MARK) else text)
    return "" if process.returncode == 0 else message or f"ended with status {process.returncode}"


def end(process: subprocess.Popen[str]) -> None:
    """Ctrl-C."""
    _write(process, b"\n")


def _write(process: subprocess.Popen[str], data: bytes) -> None:
    """To its input, unless it has ended; what fits into a pipe is written at once."""
    with suppress(OSError, ValueError):
        if process.stdin is not None:
            os.write(process.stdin.fileno(), data)
