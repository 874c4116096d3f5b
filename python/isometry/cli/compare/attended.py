"""A run that somebody else has started: `python -m isometry.cli.compare.attended NAME`, by `process.start`.

It reads the run from its standard input and sees itself whether the run starts or goes on. Every further byte is a
ctrl-C, and so is the end of the input: the process that started this one is gone, and with it who reads the output.
"""

import os
import pickle
import signal
import sys
import threading
import time
from _thread import interrupt_main

from isometry.cli import main, reported
from isometry.cli.compare.plan import Planned
from isometry.cli.compare.process import SIZE
from isometry.cli.errors import SUCCESS, Failure


def train() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
    run, threads, patience = pickle.loads(_read(int.from_bytes(_read(SIZE))))
    threading.Thread(target=_watch, daemon=True).start()
    _wait(run, time.monotonic() + patience)
    words = run.command(threads)
    return SUCCESS if words is None else main(words)


def _read(size: int) -> bytes:
    """From standard input, no byte more; not through `sys.stdin`, which reads ahead and holds up the interpreter's
    end."""
    data = b""
    while len(data) < size and (piece := os.read(0, size - len(data))):
        data += piece
    return data


def _watch() -> None:
    """In a thread: what comes after the run."""
    while _read(1):
        interrupt_main()
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    interrupt_main()


def _wait(run: Planned, until: float) -> None:
    """While another process trains the run: one whose worker was lost may still write its checkpoint."""
    while run.folder.path.is_dir() and time.monotonic() < until:
        try:
            with run.folder.locked():
                return
        except Failure:
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(reported(train))
