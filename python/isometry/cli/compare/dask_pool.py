"""Runs on the workers of a Dask cluster, which share a folder with this machine.

A run is a task, and a process that the worker starts. Dask gives the task of a lost worker to another one, where the
run continues from its checkpoint. Output comes as events of a topic; a Dask event of the same name tells all to end.
"""

import os
import subprocess
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from isometry.cli.compare import process
from isometry.cli.compare.plan import Planned
from isometry.cli.compare.pool import Pool, share, show
from isometry.cli.errors import UsageError, require

LOCAL = "local"
CONNECT_SECONDS = 10
POLL_SECONDS = 2
PATIENCE = 120.0  # for the process of a lost worker to end


def pool_of(
    address: str | None, runs: int, jobs: str | None, threads: str | None, seconds: float | None = None
) -> Pool:
    """Where that many runs are made: on this machine, or with the address of --dask on a cluster."""
    if address is None:
        return Pool(*share(runs, jobs, threads), seconds)
    require(["distributed"], "compare --dask")
    return DaskPool(*share(runs, jobs, threads, elsewhere=address != LOCAL), address, seconds)


class DaskPool(Pool):
    """A pool of the cluster at an address, of that in a scheduler's file, or of one of its own on this machine."""

    def __init__(self, processes: int, threads: int, address: str, seconds: float | None = None) -> None:
        super().__init__(processes, threads, seconds)
        from distributed import Event

        self.teller: threading.Thread | None = None
        self.channel = f"isometry-{uuid4()}"
        self.client = _client(address, processes)
        self.client.subscribe_topic(self.channel, lambda event: show(event[1]))
        self.told = Event(self.channel, client=self.client)

    def start(self, name: str, run: Planned) -> None:
        key = f"{name}-{self.channel}"
        future = self.client.submit(train, name, run, self.threads, os.getcwd(), self.channel, key=key, pure=False)
        self.running[name] = future
        future.add_done_callback(partial(self._done, name))

    def _done(self, name: str, future: Any) -> None:
        try:
            message = future.result()
        except Exception as error:  # of the cluster: too many workers lost, no scheduler any more
            message = str(error).replace(f"-{self.channel}", "")
        self.ended.put((name, message))

    def end(self) -> None:
        self.teller = threading.Thread(target=self._tell, daemon=True)  # a signal's handler must not wait
        self.teller.start()

    def _tell(self) -> None:
        self.told.set()
        begun = {key for keys in self.client.processing().values() for key in keys}
        self.client.cancel([future for future in list(self.running.values()) if future.key not in begun])

    def close(self) -> None:
        if self.teller is not None:
            self.teller.join(CONNECT_SECONDS)
        self.client.close()
        if self.client.cluster is not None:
            self.client.cluster.close()


def _client(address: str, processes: int) -> Any:
    from distributed import Client, LocalCluster

    if address == LOCAL:
        place: Any = LocalCluster(1, processes, processes=False, dashboard_address="127.0.0.1:0")
    else:
        place = None if Path(address).is_file() else address
    try:
        return Client(
            place, scheduler_file=address if place is None else None, timeout=CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"--dask {address}: {error}") from error


def train(name: str, run: Planned, threads: int, cwd: str, channel: str) -> str:
    """On a worker: the run, from its start or its checkpoint; returns what went wrong."""
    from distributed import Event, get_client, get_worker

    told = Event(channel, client=get_client())
    if told.is_set():
        return ""
    started = process.start(run, threads, cwd, PATIENCE)
    threading.Thread(target=_end_when, args=(told, started), daemon=True).start()
    return process.follow(name, started, partial(get_worker().log_event, channel))


def _end_when(told: Any, started: subprocess.Popen[str]) -> None:
    with suppress(OSError):  # the scheduler is gone, and soon the worker
        while started.poll() is None:
            if told.wait(timeout=POLL_SECONDS):
                return process.end(started)
