"""Without torch the threads come from a rayon pool, whose bits the Rust tests compare: it leaves other programs their
cores. Several callers of a forked process, which has that pool too, are in tests/soak/test_threads.py."""

import pytest

from subprocesses import ROOT, script

pytestmark = pytest.mark.alone


def test_a_busy_machine_leaves_one_thread_until_it_is_idle():
    """By the processor time of the team's threads beside the caller's: on two threads they do half of the work."""
    script(
        f"""
    import subprocess
    import sys
    import time

    sys.path.append({str(ROOT / "tests")!r})
    import numpy as np
    import isometry as iso
    from workers import CORES, workers

    iso.set_num_threads(2)
    rng = np.random.default_rng(0)
    op, grad = iso.Cayley(rng.standard_normal(400 * 399 // 2) / 30), np.ones((400, 400))

    def share(seconds):
        before, own, end = sum(workers().values()), time.thread_time_ns(), time.monotonic() + seconds
        while time.monotonic() < end:
            op.matrix_vjp(grad)
        return (sum(workers().values()) - before) / (time.thread_time_ns() - own)

    op.matrix_vjp(grad)
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin, start_new_session=True) for _ in range(CORES)]
    try:
        share(1.0)
        contended = share(4.0)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert contended < 0.3, contended
    idle = 0.0
    for _ in range(20):
        idle = idle if idle > 0.7 else share(1.0)
    assert idle > 0.7, idle
    """
    )
