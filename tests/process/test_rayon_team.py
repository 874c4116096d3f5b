"""Without torch the threads come from a rayon pool: bitwise equal for every thread count. Several callers of a forked
process, which has that pool too, are in tests/soak/test_threads.py."""

import pytest

from subprocesses import ROOT, script

pytestmark = pytest.mark.alone

WORK = """
    import sys

    import numpy as np
    import isometry as iso
    from isometry import _core

    assert _core.config()["team"] == "rayon"
    rng = np.random.default_rng(0)

    def normal(*shape, dtype):
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)

    def subjects(dtype):
        yield iso.Householder(normal(192, 96, dtype=dtype))
        yield iso.Householder(normal(64, 40, 20, dtype=dtype))
        yield iso.Cayley(normal(260 * 259 // 2, dtype=dtype) / 20)
        yield iso.Cayley(normal(64, 40 * 39 // 2, dtype=dtype) / 10)
        yield iso.Dense(normal(300, 300, dtype=dtype) / 17)

    def results(op):
        n, stack = op.shape[0], op.batch_shape
        x, ct = normal(200, *stack, n, dtype=op.dtype), normal(200, *stack, n, dtype=op.dtype)
        steps, v = normal(10, 20, 3, dtype=op.dtype), normal(n, 3, dtype=op.dtype)

        def run():
            grads, x_bar = op.apply_vjp(x, ct)
            found = [op.matrix(), op.apply(x), op.apply_adjoint(ct), x_bar, *grads.values()]
            found += op.matrix_vjp(op.matrix()).values()
            if not stack:
                states = iso.recurrence(op, steps, v)
                back = iso.recurrence_vjp(op, steps, v, states, np.ones_like(states))
                found += [states, back["x"], back["input_weight"], *back["transition"].values()]
            return found

        return run

    def same(a, b):
        return all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
"""


def test_same_bits_for_every_number_of_threads():
    script(
        WORK
        + """
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        for op in subjects(dtype):
            run = results(op)
            iso.set_num_threads(1)
            expected = run()
            for count in (2, 3, 2):
                iso.set_num_threads(count)
                assert same(run(), expected), (op, count)
    assert "torch" not in sys.modules
    """
    )


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
