"""Ctrl-C during a wait for the device raises KeyboardInterrupt; the device ends what it began, and remains usable."""

import pytest

from subprocesses import script

pytestmark = pytest.mark.alone

LONG = """
    import os, signal, threading, time
    import numpy as np
    import isometry as iso

    # whoever runs the tests in the background may have it ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    n, batch, steps = 512, 16, 100
    op = iso.Dense(np.eye(n, dtype=np.float32))
    v, x = np.ones((n, 1), np.float32) / n, np.ones((steps, batch, 1), np.float32)
    iso.recurrence(op, x[:2], v, backend="gpu")

    def call():
        if HELD:
            with iso.use_backend("gpu"):
                held = [iso.gpu.Array(a) for a in (op.weight, x, v)]
                iso.recurrence(iso.Dense(held[0]), *held[1:]).download()
        else:
            iso.recurrence(op, x, v, backend="gpu")

    start = time.perf_counter()
    call()
    whole = time.perf_counter() - start
    threading.Timer(whole / 4, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    try:
        call()
    except KeyboardInterrupt:
        took = time.perf_counter() - start
        again = iso.recurrence(op, x[:2], v, backend="gpu")
        print(took, whole, abs(again - iso.recurrence(op, x[:2], v)).max())
"""


@pytest.mark.parametrize("held", [False, True], ids=["host", "device"])
def test_a_wait_for_the_device_ends(held):
    took, whole, off = map(float, script(LONG.replace("HELD", str(held)), timeout=300).split())
    assert took < max(1.0, 0.75 * whole) and off < 1e-5
