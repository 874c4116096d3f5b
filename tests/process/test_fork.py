"""After a parallel call in the parent, a forked child computes the right result; a hanging one is killed and
fails. Pools and data loaders of forked processes are in tests/soak/test_threads.py."""

import pytest

from subprocesses import script

pytestmark = pytest.mark.alone

CHILD = """
    import numpy as np
    import isometry as iso

    rng = np.random.default_rng(0)
    iso.set_num_threads(2)
    u, a = rng.standard_normal((256, 64)), rng.standard_normal(190 * 189 // 2) / 30
    x, steps, v = rng.standard_normal((400, 256)), rng.standard_normal((30, 40, 3)), rng.standard_normal((256, 3))

    def work():
        op = iso.Householder(u)
        states = iso.recurrence(op, steps, v)
        grads = iso.recurrence_vjp(op, steps, v, states, np.ones_like(states))
        stack = iso.Cayley(np.broadcast_to(a[:28], (512, 28))).matrix()
        results = (op.apply(x), iso.Cayley(a).matrix(), states, grads["transition"]["vectors"], stack)
        return [float(np.asarray(r, complex).sum().real) for r in results]

    expected = work()
"""


def test_os_fork():
    """Again and again, and of a fork."""
    script(
        CHILD
        + """
    import os

    def forked(work):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if work() else 3)
        return os.waitpid(pid, 0)[1] == 0

    right = lambda: work() == expected
    assert all(forked(lambda: right() and forked(right)) for _ in range(2)), "a child computed something else"
    assert right()
    """
    )


def test_fork_after_torch_shared_its_team():
    """The parent's kernels ran on torch's OpenMP threads, which children do not inherit."""
    script(
        """
        import os
        import torch
        import isometry.torch as it
        from isometry import _core

        torch.set_num_threads(2)
        assert _core.config()["team"] == "openmp"
        u = torch.randn(256, 64, generator=torch.Generator().manual_seed(0))

        def work():
            vectors = u.clone().requires_grad_()
            it.Householder(vectors).matrix().sum().backward()
            return vectors.grad

        expected = work()
        pid = os.fork()
        if pid == 0:
            torch.set_num_threads(1)  # torch's own operations cannot use threads in a forked child
            it.set_num_threads(2)
            os._exit(0 if torch.equal(work(), expected) and _core.config()["team"] == "rayon" else 3)
        assert os.waitpid(pid, 0)[1] == 0
        assert torch.equal(work(), expected)
        """
    )


def test_import_starts_no_thread_and_loads_no_torch():
    script(
        """
        import sys, threading
        import isometry

        assert "torch" not in sys.modules
        assert threading.active_count() == 1
        with open("/proc/self/status") as status:
            threads = next(line for line in status if line.startswith("Threads:"))
        assert int(threads.split()[1]) == 1, threads
        """,
        OPENBLAS_NUM_THREADS="1",
        OMP_NUM_THREADS="1",
    )
