"""Integers that another thread writes to while calls read them: a call uses a copy that it has checked."""

import threading
import time

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it

N, M = 4, 20_000
#: Seconds of calls: of kernels that go by the integers, and of others. On an idle machine a small part of that shows a
#: kernel which reads what was not checked.
SECONDS = {True: 0.3, False: 0.05}


def pairs():
    return np.tile(np.array([[0, 1], [2, 3], [1, 2], [3, 0]]), (M // 4, 1))


def calls(package):
    """Name -> the integers, and a call that reads them."""
    api, own = (iso, np.asarray) if package == "numpy" else (it, torch.as_tensor)
    angles, rows = own(np.full(M, 0.1)), own(np.ones((2, N)))
    phases, vectors = own(np.full((3, M), 0.1)), own(np.ones((2, M), complex))
    long = own(np.ones((1, M), complex))
    x, v = own(np.ones((200, 100, 1))), own(np.ones((N, 1)))
    dense = api.Dense(own(0.1 * np.eye(N)))
    q = own(np.ones((1, 400, 1, 2)))
    givens, product = own(pairs()), own(np.arange(M))
    turn, mix = api.Givens(angles, givens, n=N), api.FourierProduct(phases, vectors, product)
    lengths, ends = own(np.full(100, 200)), own(np.arange(401))
    return {
        "pairs of a product": (givens, lambda: turn.apply(rows)),
        "pairs of a matrix": (givens, turn.matrix),
        "pairs of a recurrence": (givens, lambda: api.recurrence(turn, x[:2], v)),
        "a permutation": (product, lambda: mix.apply(long)),
        "lengths": (lengths, lambda: api.recurrence(dense, x, v, lengths=lengths)),
        "cu_seqlens": (ends, lambda: api.delta_rule(q, q, q, q[..., 0], cu_seqlens=ends)),
    }


@pytest.mark.cpu
@pytest.mark.parametrize("package", ["numpy", "torch"])
@pytest.mark.parametrize("name", calls("numpy"))
def test_a_thread_that_writes_integers(name, package):
    """As many calls as fit, of integers that are out of range some of the time: each returns or is a ValueError."""
    given, call = calls(package)[name]
    array = np.asarray(given)
    valid, stop = array.copy(), threading.Event()

    # the last integer over and over, valid and not for some microseconds each: numpy holds no lock meanwhile
    again = np.lib.stride_tricks.as_strided(array.reshape(-1)[-1:], (1_000_000,), (0,))
    written = np.resize(np.repeat([valid.flat[-1], 1 << 40, valid.flat[-1], -(1 << 62)], 1000), again.shape)

    def write():
        while not stop.is_set():
            np.copyto(again, written)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        end, done = time.monotonic() + SECONDS["pairs" in name], 0
        while time.monotonic() < end or not done:
            try:
                call()
            except (ValueError, RuntimeError) as error:
                assert "internal error" not in str(error), error
            done += 1
    finally:
        stop.set()
        writer.join()
    array[:] = valid
    call()
