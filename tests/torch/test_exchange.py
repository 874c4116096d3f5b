"""Tensors passed through DLPack's C exchange or through NumPy views: bitwise equal results, the same errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import isometry.torch as it
from isometry import _core
from isometry.torch._dispatch import function
from subprocesses import script

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def householder(dtype: torch.dtype, batch: tuple[int, ...]) -> list[Tensor]:
    torch.manual_seed(1)
    u, x = (
        torch.randn(*batch, 9, 3, dtype=dtype).requires_grad_(),
        torch.randn(4, *batch, 9, dtype=dtype).requires_grad_(),
    )
    operator = it.Householder(u)
    out = [operator.matrix(), operator.apply(x), operator.apply_adjoint(x)]
    return [*out, *torch.autograd.grad(sum(y.abs().square().sum() * (i + 1) for i, y in enumerate(out)), (u, x))]


def cayley(dtype: torch.dtype, batch: tuple[int, ...]) -> list[Tensor]:
    torch.manual_seed(2)
    upper, x = (
        torch.randn(*batch, 10, dtype=dtype).requires_grad_(),
        torch.randn(*batch, 5, dtype=dtype).requires_grad_(),
    )
    operator = it.Cayley(upper, signs=torch.tensor([1.0, -1, 1, 1, -1], dtype=torch.empty(0, dtype=dtype).real.dtype))
    out = operator.matrix(), operator.apply(x)
    return [
        *out,
        *torch.autograd.grad((out[0] * torch.randn_like(out[0])).sum().abs() + out[1].abs().sum(), (upper, x)),
    ]


def recurrence(dtype: torch.dtype, batch: tuple[int, ...]) -> list[Tensor]:
    torch.manual_seed(3)
    rows = batch[0] if batch else 1
    x, v = torch.randn(6, rows, 2, dtype=dtype).requires_grad_(), torch.randn(7, 2, dtype=dtype).requires_grad_()
    weight = torch.linalg.qr(torch.randn(7, 7, dtype=dtype))[0].requires_grad_()
    states = it.recurrence(
        it.Dense(weight), x, v, activation="modrelu", activation_bias=torch.zeros(7, dtype=x.real.dtype)
    )
    return [states, *torch.autograd.grad(states.abs().square().sum(), (x, v, weight))]


@pytest.mark.parametrize("batch", [(), (3,), (1,)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("work", [householder, cayley, recurrence], ids=lambda f: f.__name__)
def test_both_routes_give_the_same_bits(
    work: Callable[..., list[Tensor]], dtype: torch.dtype, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for direct in {function._DIRECT, False}:
        monkeypatch.setattr(function, "_DIRECT", direct)
        found.append(work(dtype, batch))
    for first, second in zip(found[0], found[-1], strict=True):
        assert first.shape == second.shape
        assert torch.equal(first, second)


def test_views_with_pending_conjugation_or_negation_are_read_right() -> None:
    z = torch.randn(6, 2, dtype=torch.complex128)
    assert torch.equal(it.Householder(z.conj()).matrix(), it.Householder(z.conj().resolve_conj()).matrix())
    single = torch.randn(1, 1, dtype=torch.complex128).conj().imag
    assert single.is_neg() and single.is_contiguous()
    weight = torch.ones(1, 1, dtype=torch.float64)
    assert torch.equal(it.Dense(weight).apply(single), single.resolve_neg())
    wide = torch.randn(9, 12, dtype=torch.float64)
    assert torch.equal(it.Householder(wide[:, ::4]).matrix(), it.Householder(wide[:, ::4].contiguous()).matrix())


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
    def test_tensors_that_no_kernel_reads(self, vectors: Tensor, error: type, words: str) -> None:
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
    def test_results_that_do_not_fit(self, out: object, error: type) -> None:
        vectors = torch.ones(3, 2) if function._DIRECT else np.ones((1, 3, 2), np.float32)
        with pytest.raises(error if function._DIRECT else TypeError, match="out|^vectors: expected a tensor"):
            _core.operator_matrix("householder", (vectors, None, None), out, False, 1)

    @pytest.mark.parametrize("first", [0, 6, 9, 15, 17, 23])
    def test_results_that_share_memory(self, first: int) -> None:
        """Ranges of addresses decide, of tensors and NumPy arrays alike; the next call is not affected."""
        memory, ct = torch.ones(32), torch.ones(2, 4)
        x, x_bar, vectors = memory[:8].view(2, 4), memory[8:16].view(2, 4), memory[16:24].view(4, 2)
        if not function._DIRECT:
            x, x_bar, vectors, ct = (array.numpy() for array in (x, x_bar, vectors, ct))  # type: ignore[assignment]

        def call(first: int) -> None:
            bars = (memory[first : first + 8].view(4, 2).numpy(), None, None)
            _core.operator_apply_vjp("householder", (vectors, None, None), None, x, ct, bars, x_bar, False, 1)

        with pytest.raises(ValueError, match="^(vectors_bar|x_bar) must not share memory with [a-z_]+$"):
            call(first)
        call(24)

    def test_arrays_and_tensors_mix(self) -> None:
        out = np.empty((3, 3), np.float32)
        vectors = torch.ones(1, 3, 2)
        given = (vectors if function._DIRECT else vectors.numpy(), None, None)
        _core.operator_matrix("householder", given, out, False, 1)
        np.testing.assert_array_equal(out, it.Householder(torch.ones(3, 2)).matrix().numpy())

    def test_other_types_are_not_taken(self) -> None:
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
def test_a_storage_that_is_replaced_lives_until_the_call_ends() -> None:
    """That of an argument and that of the result, replaced by set_ and by an assignment to data."""
    script(REPLACED, OMP_NUM_THREADS="1")
