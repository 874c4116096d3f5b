"""Tensors passed through DLPack's C exchange or through NumPy views: bitwise equal results, the same errors."""

import numpy as np
import pytest
import torch

import isometry.torch as it
import reference as ref
from isometry import _core
from isometry.torch._dispatch import function
from isometry.torch.operators import _plans
from kernel_calls import recorded
from laws.calls import others
from laws.test_layouts import results
from subjects import TorchSubject
from subprocesses import script
from tolerance import identical


def test_both_routes_give_the_same_bits(case, seed, monkeypatch):
    recorded(monkeypatch)  # which asks that kernels be given no tensors without the exchange
    monkeypatch.setattr(_plans, "_HELD", 0)  # backward reads a tensor, as that of a large matrix
    for batch in ((), (3,), (1,)):
        subject = TorchSubject.draw(case, seed, 5, batch)
        p, q = subject.reference().shape[-2:]
        drawn = [
            ref.normal(seed, *shape, dtype=case.dtype) for shape in ((4, *batch, q), (4, *batch, p), (*batch, p, q))
        ]
        calls, found = others(subject, seed), []
        for direct in {function._DIRECT, False}:
            monkeypatch.setattr(function, "_DIRECT", direct)
            found.append(results(subject, *drawn, calls))
        for one, other in zip(found[0], found[-1], strict=True):
            identical(one, other, "a result")


test_both_routes_give_the_same_bits.select = lambda case: case.first


def test_a_contiguous_view_with_pending_negation_is_read_right():
    """Of one number; laws/test_layouts.py has larger ones."""
    single = torch.randn(1, 1, dtype=torch.complex128).conj().imag
    assert single.is_neg() and single.is_contiguous()
    assert torch.equal(it.Dense(torch.ones(1, 1, dtype=torch.float64)).apply(single), single.resolve_neg())


class TestSeam:
    """Tensors that the extension itself rejects; all of them if torch does not offer the exchange."""

    @pytest.mark.parametrize(
        ("vectors", "error", "words"),
        [
            (torch.zeros(3, 2, dtype=torch.int64), TypeError, "float32, float64, complex64 or complex128"),
            (torch.zeros(3, 2, dtype=torch.bfloat16), TypeError, "float32, float64, complex64 or complex128"),
            (torch.ones(2, 3).T, ValueError, "C-contiguous"),
            (torch.ones(3), ValueError, "2 axes or more"),
            (torch.ones(3, 2, device="meta"), (TypeError, ValueError, RuntimeError, BufferError), "."),
        ],
        ids=["int64", "bfloat16", "strided", "rank 1", "meta"],
    )
    def test_tensors_that_no_kernel_reads(self, vectors, error, words):
        if not function._DIRECT:
            error, words = TypeError, "NumPy array"
        with pytest.raises(error, match=f"{words}|^vectors: expected a tensor"):
            _core.operator_matrix("householder", (vectors, None, None), torch.empty(3, 3), False, 1)

    @pytest.mark.parametrize(
        ("out", "error"),
        [
            (torch.empty(3, 3, dtype=torch.float64), TypeError),
            (torch.empty(3, 2), ValueError),
            (torch.empty(2, 3, 3), ValueError),
            (torch.empty(3, 6)[:, ::2], ValueError),
            ([[0.0]], TypeError),
        ],
        ids=["dtype", "shape", "batch", "strided", "list"],
    )
    def test_results_that_do_not_fit(self, out, error):
        vectors = torch.ones(3, 2) if function._DIRECT else np.ones((1, 3, 2), np.float32)
        with pytest.raises(error if function._DIRECT else TypeError, match="out|^vectors: expected a tensor"):
            _core.operator_matrix("householder", (vectors, None, None), out, False, 1)

    @pytest.mark.parametrize("first", [0, 6, 9, 15, 17, 23])
    def test_results_that_share_memory(self, first):
        """Ranges of addresses decide, of tensors and NumPy arrays alike; the next call is not affected."""
        memory, ct = torch.ones(32), torch.ones(2, 4)
        x, x_bar, vectors = memory[:8].view(2, 4), memory[8:16].view(2, 4), memory[16:24].view(4, 2)
        if not function._DIRECT:
            x, x_bar, vectors, ct = (array.numpy() for array in (x, x_bar, vectors, ct))

        def call(first):
            bars = (memory[first : first + 8].view(4, 2).numpy(), None, None)
            _core.operator_apply_vjp("householder", (vectors, None, None), None, x, ct, bars, x_bar, False, 1)

        with pytest.raises(ValueError, match="^(vectors_bar|x_bar) must not share memory with [a-z_]+$"):
            call(first)
        call(24)

    def test_arrays_and_tensors_mix(self):
        out = np.empty((3, 3), np.float32)
        vectors = torch.ones(1, 3, 2)
        given = (vectors if function._DIRECT else vectors.numpy(), None, None)
        _core.operator_matrix("householder", given, out, False, 1)
        np.testing.assert_array_equal(out, it.Householder(torch.ones(3, 2)).matrix().numpy())

    def test_other_types_are_not_taken(self):
        assert _core.exchange_with(torch.Tensor) == hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
        assert not _core.exchange_with(int)
        assert not _core.exchange_with(np.ndarray)


#: Calls of some tenths of a second, and what another thread does meanwhile.
REPLACED = """
    import threading, time
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef
    import isometry.torch
    from isometry import _core

    def lives(of_the_input, replaced):
        n = 1200
        u, out = torch.randn(n, n, dtype=torch.float64), torch.empty(n, n, dtype=torch.float64)
        expected = torch.empty_like(out)
        _core.operator_matrix("householder", (u, None, None), expected, False, 1)
        changed = u if of_the_input else out
        storage = StorageWeakRef(changed.untyped_storage())
        begun, found, other = threading.Event(), [], torch.ones(1, dtype=torch.float64)

        def replace():
            begun.wait()
            time.sleep(0.02)
            replaced(changed, other)
            found.append((time.perf_counter(), storage.expired()))

        thread = threading.Thread(target=replace)
        thread.start()
        begun.set()
        _core.operator_matrix("householder", (u, None, None), out, False, 1)
        ended = time.perf_counter()
        thread.join()
        (when, gone), = found
        assert when < ended, "the call was over before the storage was replaced"
        assert not gone, "the memory of a running call was freed"
        assert storage.expired(), "the call keeps the storage after its end"
        if changed is u:
            assert torch.equal(out, expected)

    for of_the_input in (True, False):
        for replaced in (torch.Tensor.set_, lambda changed, other: setattr(changed, "data", other)):
            lives(of_the_input, replaced)
"""


@pytest.mark.alone
def test_a_storage_that_is_replaced_lives_until_the_call_ends():
    """That of an argument and that of the result, replaced by set_ and by an assignment to data."""
    script(REPLACED, OMP_NUM_THREADS="1")
