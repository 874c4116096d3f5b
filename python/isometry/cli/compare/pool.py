"""Runs in processes of their own, several at once; ctrl-C reaches each of them once.

Every process has a session of its own, or on Windows a group, so that a terminal's ctrl-C reaches this process only,
which passes it on: a run that received it twice would end without its checkpoint. To a group of Windows only ctrl-break
can be sent. The output of the runs goes to standard error as it comes.
"""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import isometry
from isometry.cli.errors import UsageError
from isometry.cli.interrupt import Interrupt
from isometry.cli.settings import SETTINGS

SIGNAL = getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT)
MARK = "isometry: "  # the start of a failed command's message


def share(runs: int, jobs: str | None, threads: str | None) -> tuple[int, int]:
    """Processes at once and the threads of each: all cores in use, none twice, unless the options say otherwise.

    Small networks gain more from a process of their own than from a second thread, so there are as many processes as
    cores before a process gets two threads.
    """
    cores = isometry.get_num_threads()
    each = None if threads is None else SETTINGS["threads"].check(SETTINGS["threads"].parse(threads), "--threads")
    if jobs is None:
        processes = max(1, min(runs, cores // (each or 1)))
    elif jobs.isdecimal() and int(jobs) >= 1:
        processes = int(jobs)
    else:
        raise UsageError(f"--jobs must be an integer >= 1, not {jobs!r}")
    return processes, each or max(1, cores // processes)


class Pool:
    """Runs `python -m isometry ARGUMENTS` for every named list of arguments, at most `processes` at once."""

    def __init__(self, commands: Mapping[str, Sequence[str]], processes: int, seconds: float | None = None) -> None:
        self.waiting, self.processes = list(commands.items()), processes
        self.ends = float("inf") if seconds is None else time.monotonic() + seconds
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.failed: dict[str, str] = {}
        self.ended: queue.Queue[tuple[str, str]] = queue.Queue()
        self.stopped = False  # no further run is started, and the running ones have been told to end

    def run(self) -> bool:
        """Returns whether all runs have ended, well or badly (`failed` has the messages); False after ctrl-C or the
        time limit."""
        try:
            with Interrupt(self._pass_on):
                while self.running or (self.waiting and not self.stopped):
                    while self.waiting and len(self.running) < self.processes and not self.stopped:
                        self._start(*self.waiting.pop(0))
                    self._collect()
                    if not self.stopped and time.monotonic() > self.ends:
                        self._pass_on()
        finally:
            for process in list(self.running.values()):  # after a second ctrl-C, which they have received too
                process.wait()
        return not self.stopped

    def _start(self, name: str, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-m", "isometry", *arguments]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self.running[name] = process
        if self.stopped:  # the signal came between the two lines above
            _end(process)
        threading.Thread(target=self._relay, args=(name, process), daemon=True).start()

    def _relay(self, name: str, process: subprocess.Popen[str]) -> None:
        """In a thread: show the output of the run until it ends."""
        message = ""
        with process:
            for line in process.stdout or ():
                text = line.rstrip()
                failed = text.startswith(MARK) and not text.startswith(MARK + "warning")
                message = text.removeprefix(MARK) if failed else message
                with suppress(OSError):
                    print(f"{name}: {text.removeprefix(MARK)}" if text.startswith(MARK) else text, file=sys.stderr)
        self.ended.put((name, message))

    def _collect(self) -> None:
        """Wait for the end of a run, or for the time limit."""
        left = min(self.ends - time.monotonic(), 3600.0) if not self.stopped else 3600.0
        try:
            name, message = self.ended.get(timeout=max(left, 0.01))
        except queue.Empty:
            return
        status = self.running.pop(name).returncode
        if status and not self.stopped:
            self.failed[name] = message or f"ended with status {status}"

    def _pass_on(self) -> None:
        self.stopped = True
        for process in list(self.running.values()):
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            process.send_signal(SIGNAL)
