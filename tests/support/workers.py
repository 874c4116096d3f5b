"""Whether a call used other threads than its own, from the kernel's counts of each thread's run time."""

import threading
import time
from pathlib import Path

from isometry import _core

CORES = _core.available_parallelism()


def workers():
    """Nanoseconds that every other thread of this process (ours or OpenMP's) has run, once all of them sleep."""
    own = str(threading.get_native_id())
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        ran, asleep = {}, True
        for task in Path("/proc/self/task").iterdir():
            try:
                if task.name != own:
                    asleep &= (task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "S"
                    ran[task.name] = int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue  # a thread that has just ended
        if asleep:
            return ran
        time.sleep(1e-4)
    raise AssertionError("a worker never sleeps")


def watched(call):
    """The result of the call, and whether a worker ran during it."""
    before = workers()
    result = call()
    after = workers()
    return result, any(ran > before.get(name, 0) for name, ran in after.items())
