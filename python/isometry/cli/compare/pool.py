"""Runs in processes of their own, several at once; ctrl-C reaches each of them once.

The output of the runs goes to standard error as it comes.
"""

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import isometry
from isometry.cli.compare import process
from isometry.cli.compare.plan import Planned
from isometry.cli.errors import positive
from isometry.cli.interrupt import Interrupt
from isometry.cli.settings import SETTINGS


def share(runs: int, jobs: str | None, threads: str | None, *, elsewhere: bool = False) -> tuple[int, int]:
    """Runs at once and the threads of each: all cores in use, none twice, unless the options say otherwise.

    Small networks gain more from a process of their own than from a second thread, so there are as many processes as
    cores before a process gets two threads. With `elsewhere`, where others divide the cores, all runs at once with one
    thread each.
    """
    cores = isometry.get_num_threads()
    each = None if threads is None else SETTINGS["threads"].check(SETTINGS["threads"].parse(threads), "--threads")
    most = max(1, runs if elsewhere else min(runs, cores // (each or 1)))
    processes = most if jobs is None else positive("--jobs", jobs)
    return processes, each or (1 if elsewhere else max(1, cores // processes))


def show(text: str) -> None:
    """A line of a run's output."""
    with suppress(OSError):
        print(text, file=sys.stderr)


class Pool:
    """Starts or continues runs in processes on this machine, at most `processes` at once, for at most `seconds`."""

    def __init__(self, processes: int, threads: int, seconds: float | None = None) -> None:
        self.processes, self.threads = processes, threads
        self.ends = float("inf") if seconds is None else time.monotonic() + seconds
        self.running: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.ended: queue.Queue[tuple[str, str]] = queue.Queue()  # names, and what went wrong
        self.stopped = False  # no further run is started, and the running ones have been told to end

    def run(self, runs: Mapping[str, Planned]) -> bool:
        """Returns whether all runs have ended, well or badly (`failed` has the messages); False after ctrl-C or the
        time limit."""
        waiting = list(runs.items())
        try:
            with Interrupt(self._stop):
                while self.running or (waiting and not self.stopped):
                    while waiting and len(self.running) < self.processes and not self.stopped:
                        self.start(*waiting.pop(0))
                    self._collect()
                    if not self.stopped and time.monotonic() > self.ends:
                        self._stop()
        finally:
            self.close()
        return not self.stopped

    def start(self, name: str, run: Planned) -> None:
        """Start a run, which enters itself into `ended` at its end."""
        started = self.running[name] = process.start(run, self.threads)
        if self.stopped:  # the signal came between the two halves of the line above
            process.end(started)
        threading.Thread(target=self._follow, args=(name, started), daemon=True).start()

    def _follow(self, name: str, started: subprocess.Popen[str]) -> None:
        try:
            message = process.follow(name, started, show)
        except Exception as error:  # of standard error; without an entry `run` would wait for ever
            message = f"{type(error).__name__}: {error}"
        self.ended.put((name, message))

    def _collect(self) -> None:
        """Wait for the end of a run, or for the time limit."""
        left = min(self.ends - time.monotonic(), 3600.0) if not self.stopped else 3600.0
        try:
            name, message = self.ended.get(timeout=max(left, 0.01))
        except queue.Empty:
            return
        del self.running[name]
        if message and not self.stopped:
            self.failed[name] = message

    def _stop(self) -> None:
        self.stopped = True
        self.end()

    def end(self) -> None:
        """Tell the running ones to end; called by a signal's handler."""
        for started in list(self.running.values()):
            process.end(started)

    def close(self) -> None:
        """After a second ctrl-C, which the runs have received too: wait for them."""
        for started in list(self.running.values()):
            started.wait()
