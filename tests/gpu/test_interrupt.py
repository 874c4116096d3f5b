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
    n, batch, steps, whole = 512, 16, 100, 0
    CALL
    most = next(adapter.most_bytes for adapter in iso.gpu.adapters() if adapter.used)
    while whole < 0.4 and 36 * steps * batch * n < most:  # bytes of the largest array, 9 n floats a row, of the RUM
        x = np.ones((steps, batch, 1), np.float32)
        computed(x[:2], "gpu")
        start = time.perf_counter()
        computed(x, "gpu")
        whole, steps = time.perf_counter() - start, 3 * steps
    threading.Timer(whole / 4, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    try:
        computed(x, "gpu")
    except KeyboardInterrupt:
        took = time.perf_counter() - start
        print(took, whole, abs(computed(x[:2], "gpu") - computed(x[:2], "cpu")).max())
"""
AFFINE = """
    op, v = iso.Dense(np.eye(n, dtype=np.float32)), np.ones((n, 1), np.float32) / n
"""
#: name -> what computes states from x.
CALLS = {
    "host": f"""{AFFINE}
    def computed(x, backend):
        return iso.recurrence(op, x, v, backend=backend)
""",
    "device": f"""{AFFINE}
    def computed(x, backend):
        if backend == "cpu":
            return iso.recurrence(op, x, v)
        with iso.use_backend("gpu"):
            held = [iso.gpu.Array(a) for a in (op.weight, x, v)]
            return iso.recurrence(iso.Dense(held[0]), *held[1:]).download()
""",
    "gru": """
    import torch, isometry.torch as it
    w, u = torch.eye(n).repeat(3, 1, 1), torch.ones(3, n, 1) / n

    def computed(x, backend):
        return it.gru(torch.from_numpy(x), w, u, None, backend=backend).numpy()
""",
    "rum": """
    import torch, isometry.torch as it
    w, u = torch.eye(n).repeat(2, 1), torch.ones(2 * n, 1) / n

    def computed(x, backend):
        return it.rum(torch.from_numpy(x), w, u, None, u[:n], None, backend=backend)[0].numpy()
""",
    "delta": """
    def computed(x, backend):
        k = np.broadcast_to(x[:, :1, None] / 8, (len(x), 1, 2, 64)).swapaxes(0, 1)
        return iso.delta_rule(k, k, k, k[..., 0], scale=1.0, backend=backend)[0]
""",
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wait_for_the_device_ends(name):
    took, whole, off = map(float, script(LONG.replace("    CALL", CALLS[name]), timeout=300).split())
    assert took < max(1.0, 0.75 * whole) and off < 1e-5


PARTS = """
    import os, signal, threading, time
    import numpy as np
    import isometry as iso

    signal.signal(signal.SIGINT, signal.default_int_handler)
    arrays = {"w": np.ones((4, 4, 4), np.float32) / 4, "u": np.ones((4, 4, 1), np.float32)}

    def timed(steps):
        start = time.perf_counter()
        try:
            iso.lstm(np.ones((steps, 1, 1), np.float32), **arrays, backend="gpu")
        except KeyboardInterrupt:
            print("interrupted")
        return time.perf_counter() - start

    timed(10)
    some = timed(10_000)
    threading.Timer(some / 2, os.kill, (os.getpid(), signal.SIGINT)).start()
    print(timed(200_000), timed(10), some)
"""


def test_a_call_of_many_dispatches_ends_between_its_parts():
    """While it is recorded; the next call does not wait for all that was to come."""
    word, *times = script(PARTS, timeout=300).split()
    took, later, some = map(float, times)
    assert word == "interrupted" and took < 5 * some and later < 5 * some
