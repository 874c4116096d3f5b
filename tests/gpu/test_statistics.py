"""What calls ask of the GPU: budgets of dispatches, copies, submissions, waits and bytes, the same on every adapter."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from isometry.gpu import Array
from rows.gpu_calls import CALLS, draw
from subprocesses import script


def since(before):
    return {name: count - before[name] for name, count in iso.gpu.statistics().items()}


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_a_call_stays_within_its_budget(call):
    found = call.asked()
    assert not call.exceeded(found), found


def test_bytes_are_those_of_the_arrays():
    x = draw(5, 7)
    before = iso.gpu.statistics()
    held = Array(x)
    assert since(before) == {
        "dispatches": 0, "copies": 0, "submissions": 0, "waits": 0, "uploaded": x.nbytes, "downloaded": 0,
    }  # fmt: skip
    held.download()
    found = since(before)
    assert (found["downloaded"], found["waits"], found["submissions"]) == (x.nbytes, 1, 1)


def test_each_array_of_a_recurrence_crosses_once():
    """Members of an ensemble share x and input_weight, the transition's arguments serve W and its gradient."""
    upper, x, v = draw(3, 28) / 8, draw(20, 1, 4, 3), draw(8, 3)
    op = iso.Cayley(upper)
    before = iso.gpu.statistics()
    states = iso.recurrence(op, x, v, backend="gpu")
    found = since(before)
    assert found["uploaded"] == upper.nbytes + x.nbytes + v.nbytes
    assert (found["downloaded"], found["waits"], found["submissions"]) == (states.nbytes, 1, 2)
    before = iso.gpu.statistics()
    bars = iso.recurrence_vjp(op, x, v, states, states, check_states=False, backend="gpu")
    found = since(before)
    assert found["uploaded"] == upper.nbytes + x.nbytes + v.nbytes + 2 * states.nbytes
    results = sum(bars[name].nbytes for name in ("x", "input_weight")) + bars["transition"]["upper"].nbytes
    assert (found["waits"], found["submissions"]) == (1, 2) and found["downloaded"] <= 3 * results


def test_a_training_step_forms_w_once():
    """W of 512 x 512 takes 47 dispatches; the gradient takes it from forward, and another W is formed again."""
    layer, x = it.nn.ScoRNN(1, 512), torch.from_numpy(draw(3, 2, 1))

    def dispatches(call):
        before = iso.gpu.statistics()
        found = call()
        return found, since(before)["dispatches"]

    with iso.use_backend("gpu"):
        form = dispatches(lambda: iso.Cayley(Array(draw(512 * 511 // 2) / 512)).matrix())[1]
        out, first = dispatches(lambda: layer(x)[0])
        _, back = dispatches(out.sum().backward)
        again, same = dispatches(lambda: layer(x)[0])
        with torch.no_grad():
            layer.upper_l0.add_(1.0 / 512)
        other, renewed = dispatches(lambda: layer(x)[0])
    assert form > 40 and first >= renewed >= form and same < first - form // 2
    assert back < 2 * form + 30 and torch.equal(out, again) and not torch.equal(out, other)
    assert torch.allclose(other, layer(x)[0], atol=1e-5)


@pytest.mark.parametrize("steps", [2000, 5000])
def test_a_long_call_is_submitted_in_parts(steps):
    """Of 4,096 dispatches; from the second on it waits for the one before, so that two are in hand at most."""
    arrays = {"x": draw(steps, 1, 1), "w": draw(4, 2, 2) / 4, "u": draw(4, 2, 1)}
    expected = iso.lstm(**arrays)[0]
    before = iso.gpu.statistics()
    states = iso.lstm(**arrays, backend="gpu")[0]
    found = since(before)
    parts = -(-found["dispatches"] // 4096)
    assert found["dispatches"] >= 2 * steps and parts == (1 if steps == 2000 else 3)
    assert (found["submissions"], found["waits"]) == (parts + 1, max(parts - 1, 1))
    assert np.allclose(states, expected, atol=1e-5)


def test_what_was_kept_serves_the_same_arrays_alone():
    u, x, ct = draw(64, 16), Array(draw(33, 64)), Array(draw(33, 64, seed=1))
    expected = [a.download() for a in iso.Householder(Array(u)).apply_vjp(x, ct, backend="gpu")[0].values() if a]
    op = iso.Householder(Array(u))
    for rows in (x, Array(draw(33, 64, seed=2)), x):
        op.apply(rows, backend="gpu")
        found = [a.download() for a in op.apply_vjp(x, ct, backend="gpu")[0].values() if a]
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.fork
def test_a_forked_child_begins_at_zero():
    code = """
        import os, numpy as np, isometry as iso
        iso.gpu.Array(np.ones(3))
        child = os.fork()
        if child == 0:
            os._exit(any(iso.gpu.statistics().values()))
        print(os.waitpid(child, 0)[1], iso.gpu.statistics()["uploaded"])
    """
    assert script(code, timeout=60).split() == ["0", "12"]


def test_a_matrix_is_kept_of_the_numbers_that_were_uploaded():
    """Not of those that a handler of a signal writes at one of the submissions, of 4,096 dispatches each."""
    code = """
        import os, signal, threading, numpy as np, isometry as iso
        call = lambda u, **at: iso.recurrence(iso.Householder(u), x[:, : len(u)], np.ones((4, 1), np.float32), **at)
        count = lambda: iso.gpu.statistics()["dispatches"]
        rng, before = np.random.default_rng(0), count()
        u, other, x = (rng.standard_normal((6000, 4, 1)).astype(np.float32) for _ in range(3))
        x = x.swapaxes(0, 1)[..., None]
        call(u[:20] + 1, backend="gpu")
        u, begun = u[: 10 * 4096 // ((count() - before) // 20) + 8], count()
        old, new = call(u), call(other[: len(u)])
        signal.signal(signal.SIGUSR1, lambda *_: u.__setitem__(..., other[: len(u)]))

        def watch():
            while count() < begun + 2000:
                pass
            os.kill(os.getpid(), signal.SIGUSR1)

        thread = threading.Thread(target=watch)
        thread.start()
        first = call(u, backend="gpu")
        thread.join()
        wrong = lambda a, b: len(u) - np.isclose(a, b, atol=1e-4).all((0, 2, 3)).sum()
        print(wrong(first, old), wrong(call(u, backend="gpu"), new))
    """
    first, second = map(int, script(code, timeout=120).split())
    assert 0 < first < 6000 and second == 0


def test_members_with_large_matrices_are_submitted_apart():
    """W and its gradient count, as the other arrays do."""
    w, x = np.zeros((20, 1024, 1024), np.float32), draw(1, 20, 1, 1)
    before = iso.gpu.statistics()
    iso.recurrence(iso.Dense(w), x, draw(1024, 1), backend="gpu")
    assert since(before)["waits"] > 1
