"""After a parallel call in the parent, a forked child computes the right result; a hanging one is killed and
fails."""

import sys
import textwrap

import pytest

from subprocesses import run, script

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

POOL = """
    import multiprocessing
    import sys

    def compare(expected):
        return work() == expected

    if __name__ == "__main__":
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            assert pool.map(compare, [expected] * 4) == [True] * 4
"""


def test_fork_of_a_fork():
    script(
        CHILD
        + """
    import os

    pid = os.fork()
    if pid == 0:
        ok = work() == expected
        inner = os.fork()
        if inner == 0:
            os._exit(0 if work() == expected else 4)
        os._exit(0 if ok and os.waitpid(inner, 0)[1] == 0 else 3)
    assert os.waitpid(pid, 0)[1] == 0, "a child computed something else"
    assert work() == expected
    """
    )


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method, tmp_path):
    """Two concurrent children, each with parallel calls."""
    main = tmp_path / "child_main.py"
    main.write_text(textwrap.dedent(CHILD) + textwrap.dedent(POOL))
    run([sys.executable, str(main), method])


def test_data_loader_workers():
    """Workers that compute with both faces while the parent trains with the torch face."""
    script(
        """
        import numpy as np
        import torch
        import isometry as iso
        import isometry.torch as it

        it.set_num_threads(2)
        iso.set_num_threads(2)
        u = np.random.default_rng(0).standard_normal((64, 16))

        class Turned(torch.utils.data.Dataset):
            def __len__(self):
                return 16

            def __getitem__(self, index):
                x = np.random.default_rng(index).standard_normal((300, 64))
                one = iso.Householder(u).apply(x)
                two = it.Householder(torch.from_numpy(u)).apply(torch.from_numpy(x))
                assert np.array_equal(one, two.numpy())
                return torch.from_numpy(one), x

        op = it.Householder(torch.from_numpy(u).requires_grad_())
        op.apply(torch.ones(400, 64, dtype=torch.float64)).sum().backward()
        loader = torch.utils.data.DataLoader(Turned(), batch_size=4, num_workers=2, multiprocessing_context="fork")
        seen = 0
        for turned, x in loader:
            expected = it.Householder(torch.from_numpy(u)).apply(x)
            assert torch.allclose(turned, expected)
            seen += len(x)
        assert seen == 16
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
