"""Gated recurrences inside of `use_backend("gpu")`: the numbers of the CPU."""

import numpy as np
import pytest
import torch

import isometry.torch as it
from gpu_tensors import B, D, N, T, draw, same
from kernel_calls import recorded


@pytest.fixture
def calls(monkeypatch):
    return recorded(monkeypatch)


def gated(rng, dtype=torch.float32):
    """Gated recurrences of leaves, which come behind them, and options."""
    x, h0 = draw(rng, T, B, D, dtype=dtype), draw(rng, B, N, dtype=dtype)
    w, u, b = draw(rng, 3, N, N, dtype=dtype) / N, draw(rng, 3, N, D, dtype=dtype), draw(rng, 3, N, dtype=dtype)
    given = (x, w, u, b, h0)
    hidden, vectors, mesh = draw(rng, N, dtype=dtype), draw(rng, N, 3, dtype=dtype), draw(rng, N - 1, dtype=dtype)
    gru = lambda x, w, u, b, h0, **k: it.gru(x, w, u, b, h0=h0, **k)
    goru = lambda x, w, u, b, h0, v, **k: it.goru(it.Householder(v), x, w[:2], u, b, h0=h0, **k)
    rum = lambda x, w, u, b, h0, e, **k: it.rum(x, w, u, b, e, None, h0=h0, eta=1.5, **k)[0]
    memory = lambda *at, **k: joined(it.rum(*at[:5], None, h0=at[5], r0=at[6], lam=1, **k))
    own = (x, w[:2].flatten(0, 1), u[:2].flatten(0, 1), b[:2].flatten())
    embed, r0 = draw(rng, N, D, dtype=dtype), draw(rng, B, N, N, dtype=dtype) / N
    through = lambda x, w, u, b, h0, v, **k: it.goru(it.Mesh(v, n=N, layers=2), x, w[:2], u, b, h0=h0, **k)
    after = lambda *at, **k: it.gru(*at[:4], h0=at[4], hidden_bias=at[5], reset="after", **k)
    return {
        "gru": (gru, given),
        "gru after": (after, (*given, hidden)),
        "goru": (goru, (*given, vectors)),
        "goru over a mesh": (through, (*given, mesh)),
        "rum": (rum, (*own, h0, embed)),
        "rum with a memory": (memory, (*own, embed, h0, r0)),
    }


def joined(results):
    """States and memory side by side."""
    states, memory = results
    return torch.cat((states.flatten(), memory.flatten()))


#: Options of a gated recurrence.
OPTIONS = {
    "plain": {},
    "lengths": {"lengths": [2, T, 0], "reverse": True},
    "last": {"output": "last", "lengths": [T, 0, 1]},
    "checkpoint": {"checkpoint": "sqrt"},
    "oplu": {"activation": "oplu"},
    "modrelu": {"activation": "modrelu", "activation_bias": torch.linspace(-0.5, 0.5, N)},
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", gated(np.random.default_rng(0)))
def test_gated_recurrences_are_those_of_the_cpu(name, option, seed, calls):
    """All on the GPU, apart from the matrix of a mesh; within 1e-5 of the CPU in double precision."""
    call, at = gated(seed)[name]
    options = OPTIONS[option]
    if "memory" in name:
        options = {k: v for k, v in options.items() if k != "checkpoint"}
    same(lambda *at: call(*at, **options), at)
    taken = calls.taken()
    assert {c.backend for c in taken[: len(taken) // 2]} == {"gpu"} and {c.backend for c in taken} == {"gpu", "cpu"}
    with it.use_backend("gpu"):
        found = call(*at, **options)
    wide = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    assert (found - call(*(t.double() for t in at), **wide)).abs().max() < 1e-5


def test_gated_recurrences_take_single_precision_and_no_starts(seed):
    for name, (call, at) in gated(seed).items():
        with it.use_backend("gpu"):
            if name == "rum with a memory":  # whose marks are computed by the formula
                with pytest.raises(TypeError, match="float32 and complex64"):
                    call(*(t.double() for t in at))
                continue
            for starts, wide, error in ((torch.ones(T, B, dtype=torch.bool), at, NotImplementedError),
                                        (None, [t.double() for t in at], TypeError)):  # fmt: skip
                with pytest.raises(error, match="cannot serve starts|float32 and complex64"):
                    call(*wide, starts=starts)
                assert call(*wide, starts=starts, backend="cpu").isfinite().all()
        with pytest.raises(ValueError, match="backend must be"):
            call(*at, backend="cuda")
