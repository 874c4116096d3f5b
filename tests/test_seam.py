"""The extension under attack: calls that prepare for long, memory that ends, objects that only look like tensors."""

import numpy as np
import pytest

from isometry import _core
from subprocesses import script

pytestmark = pytest.mark.alone

#: A thread that notes the longest time it had to wait; the rest of the program is what it waited for.
WATCHED = """
    import threading, time
    import numpy as np
    import isometry as iso

    class Watch(threading.Thread):
        def run(self):
            self.longest, self.count, self.done = 0.0, 0, False
            last = time.perf_counter()
            while not self.done:
                time.sleep(0.001)
                now = time.perf_counter()
                self.longest, last, self.count = max(self.longest, now - last), now, self.count + 1

    def held(call):
        watch = Watch(daemon=True)
        watch.start()
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        watch.done = True
        watch.join()
        return took, watch.longest

    def fourier(n):
        phases, vectors = np.zeros((3, n), np.float32), np.ones((2, n), np.complex64)
        return iso.FourierProduct(phases, vectors, np.arange(n))
"""


@pytest.mark.parametrize(
    "call",
    [
        "op = fourier(999_983); x = np.ones(op.shape[0], np.complex64); call = lambda: op.apply(x)",
        "op = fourier(999_983); x = np.ones((2, 1, 1), np.complex64); v = np.ones((op.shape[0], 1), np.complex64); "
        "call = lambda: iso.recurrence(op, x, v)",
    ],
    ids=["apply", "recurrence"],
)
def test_other_threads_run_while_a_call_prepares(call):
    """A plan of a large prime evaluates very many sines, without the lock of the interpreter."""
    out = script(WATCHED + f"\n    {call}\n    print(*held(call))", OMP_NUM_THREADS="1")
    took, longest = map(float, out.split())
    assert took > 0.05, f"{took} s: too short to tell, take a larger prime"
    assert longest < took / 3, f"another thread waited {longest:.2f} of {took:.2f} s"


def test_memory_that_ends_while_a_call_saves():
    """What a forward call saves is an array of the extension's own."""
    script(
        """
        import resource
        import numpy as np
        from isometry import _core

        batch, n = 8192, 64
        upper, x = np.zeros((batch, n * (n - 1) // 2), np.float32), np.ones((batch, 1, n), np.float32)
        out = np.empty_like(x)

        def call(batch):
            arguments = upper[:batch], None, None, None
            return _core.operator_apply("cayley", arguments, x[:batch], out[:batch], False, True, 1)

        assert call(2).size == 2 * n * n
        with open("/proc/self/statm") as statm:
            size = int(statm.read().split()[0]) * resource.getpagesize()
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size + (32 << 20), limits[1]))
        try:
            call(batch)
        except MemoryError:
            resource.setrlimit(resource.RLIMIT_AS, limits)
            assert call(2).size == 2 * n * n
        else:
            raise AssertionError("the limit is too high for this test")
        """
    )


@pytest.mark.parametrize(
    "lengths",
    [
        np.frombuffer(bytearray(17), np.int64, 2, offset=1),
        np.ones(4, np.int64)[::2],
        np.ones((2, 1), np.int64),
        np.ones(2, np.int32),
        [1, 1],
    ],
    ids=["misaligned", "strided", "two axes", "int32", "list"],
)
def test_lengths_are_one_array_of_aligned_integers(lengths):
    u, x, v = np.ones((4, 2)), np.ones((3, 2, 1)), np.ones((4, 1))
    with pytest.raises((TypeError, ValueError), match="lengths: expected"):
        arrays, law = (x, v, *[None] * 4), ("tanh", 0.0, (False,))
        results = np.empty((3, 2, 4)), None, None
        _core.sequence("recurrence", ("householder", (u, None, None)), arrays, law, (lengths, False, None), results, 1)


def test_only_tensors_are_read_as_tensors():
    """`isinstance` believes the attribute `__class__`, which mocks and proxies have; their memory is no tensor's."""
    pytest.importorskip("torch")
    script(
        """
        import unittest.mock
        import numpy as np
        import torch
        import isometry.torch
        from isometry import _core

        class Proxy:
            __class__ = torch.Tensor

        out = np.empty((3, 3), np.float32)
        for fake in (Proxy(), unittest.mock.Mock(spec=torch.Tensor)):
            assert isinstance(fake, torch.Tensor)
            for arguments, to in (((fake, None, None), out), ((np.ones((3, 2), np.float32), None, None), fake)):
                try:
                    _core.operator_matrix("householder", arguments, to, False, 1)
                except TypeError:
                    continue
                raise AssertionError("taken for a tensor")
        """
    )


def test_packed_operands():
    """The states of nine steps, whose matrices are packed in any case, are those without them; other lengths and types
    are refused. The affine cell takes the matrices V, W, a GRU W_z and W_r, W_h, U_z and U_r, U_h, an LSTM W, U, a
    rotational unit W, U_ut, U_e, in this order."""
    rng = np.random.default_rng(1)
    x, w, u = rng.standard_normal((9, 1, 3)), rng.standard_normal((3, 5, 5)), rng.standard_normal((3, 5, 3))
    split, pair = (u[:2].reshape(10, 3), u[2]), w[:2].reshape(10, 5)
    lstm = x[..., :2].copy(), w.reshape(-1)[:64].reshape(16, 4), u.reshape(-1)[:32].reshape(16, 2)
    cells = (
        ("recurrence", ("dense", (w[0],)), (x, u[0], *[None] * 4), (False,), [u[0], w[0]]),
        ("gru", None, (x, w, u, *[None] * 5), (True,), [pair, w[2], *split]),
        ("lstm", None, (*lstm, *[None] * 4), (), lstm[1:]),
        ("rum", None, (x, pair, u.reshape(15, 3), *[None] * 5), (False, None), [pair, *split]),
    )
    for cell, transition, arrays, settings, matrices in cells:
        width, given = 8 if cell == "lstm" else 5, (cell, transition, arrays, ("tanh", 0.0, settings))
        call = lambda out, *packs, given=given: _core.sequence(
            *given, (None, False, None), (out, None, None), 1, *packs
        )
        packs, expected, found = np.empty(_core.pack(matrices)), np.empty((9, 1, width)), np.empty((9, 1, width))
        assert _core.pack(matrices, packs) == packs.size
        call(expected)
        call(found, packs)
        assert np.array_equal(found, expected)
        call(found, 0 * packs)  # they are read, not made again
        assert not np.array_equal(found, expected)
        with pytest.raises(ValueError, match="packs"):
            call(found, packs[:-1])
        with pytest.raises(TypeError, match="packs"):
            call(found, packs.astype(np.float32))
    assert _core.pack([]) == 0
    with pytest.raises(ValueError, match="out"):
        _core.pack(matrices, packs[:-1])
    with pytest.raises(TypeError, match="matrices"):
        _core.pack([u[0], w[0].astype(np.float32)])


def test_marks_of_a_memory_are_refused():
    x, w, u, b = np.ones((3, 2, 1)), np.ones((4, 2)), np.ones((6, 1)), np.ones(6)
    law, steps = ("tanh", 0.1, (True, None)), (None, False, np.zeros((3, 2), np.int64))
    results = np.empty((3, 2, 2)), np.empty((2, 2, 2)), None
    with pytest.raises(NotImplementedError, match="starts"):
        _core.sequence("rum", None, (x, w, u, b, *[None] * 4), law, steps, results, 1)
