"""Calls with `backend="gpu"`, and what each may ask of the GPU: counts that are the same on every adapter."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

import isometry as iso
import isometry.torch as it
from isometry.gpu import Array

Given = tuple[Any, ...]


class Call(NamedTuple):
    """A call, the arrays of each run of it, and its budget."""

    name: str
    arrays: Callable[[], Given]  # drawn once
    fresh: Callable[..., Given]  # from these what a run takes: on the GPU nothing is kept for arrays that are new
    run: Callable[..., object]
    dispatches: int
    submissions: int
    waits: int = 0  # of the download; arrays that stay on the GPU wait for nothing
    copies: int = 0  # from array to array on the GPU

    def asked(self) -> dict[str, int]:
        """What a run asks for once all shaders are compiled."""
        with iso.use_backend("gpu"):
            drawn = self.arrays()
            self.run(*self.fresh(*drawn))
            given = self.fresh(*drawn)
            before = iso.gpu.statistics()
            self.run(*given)
        return {name: count - before[name] for name, count in iso.gpu.statistics().items()}

    def exceeded(self, found: dict[str, int]) -> list[str]:
        """The counts above the budget."""
        budget = ("dispatches", "submissions", "waits", "copies")
        return [f"{name} {found[name]} > {most}" for name in budget if found[name] > (most := getattr(self, name))]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tensors(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.from_numpy(draw(*shape, seed=seed)) for seed, shape in enumerate(shapes)]


def same(*given: Any) -> Given:
    return given


def on_gpu(*given: np.ndarray) -> Given:
    return tuple(Array(a) for a in given)


def _both(vectors: Any, x: Any, ct: Any) -> object:
    op = iso.Householder(vectors)
    op.apply(x)
    return op.apply_vjp(x, ct)


def _sequence_and_states() -> Given:
    op, x, v = _sequence()
    return op, x, v, iso.recurrence(op, x, v)


def _unit() -> Given:
    """x, w, u, b, embed_weight, embed_bias of a rotational unit."""
    return tuple(t.requires_grad_() for t in tensors((10, 4, 3), (16, 8), (16, 3), (16,), (8, 3), (8,)))


def _delta() -> Given:
    """q, k, v, beta, g of 5 chunks of 4 heads."""
    q, k, v, beta, g = tensors((1, 300, 2, 16), (1, 300, 2, 16), (1, 300, 4, 16), (1, 300, 4), (1, 300, 4))
    return tuple(t.requires_grad_() for t in (q, k, v, beta.sigmoid(), -g.abs()))


def _summed(*results: Any) -> object:
    return sum(t.sum() for t in results).backward()


def first(call: Callable[..., Any]) -> Callable[..., Given]:
    """The first result of a call."""
    return lambda *given: call(*given)[:1]


_reflections = lambda: (draw(1024, 256), draw(1024, 1024), draw(1024, 1024, seed=1))
_cayley = lambda: (draw(64, 496) / 8, draw(64, 32, 32))
_sequence = lambda: (iso.Householder(draw(32, 4)), draw(40, 4, 3), draw(32, 3) / 4)
_ensemble = lambda: (iso.Cayley(draw(3, 28) / 8), draw(20, 1, 4, 3), draw(8, 3))
_layer = lambda: (it.nn.LSTM(3, 8), torch.from_numpy(draw(10, 4, 3)).requires_grad_())
_applied = lambda vectors, x, *_: iso.Householder(vectors)(x)
_pulled = lambda op, x, v, states: iso.recurrence_vjp(op, x, v, states, states, check_states=False)
_with_memory = lambda *given: it.rum(*given, lam=1)
_ruled = lambda *given: it.delta_rule(*given[:4], g=given[4])
_called = lambda layer, x: layer(x)
CALLS = (
    Call("Householder, 1,024 x 256 on 1,024 rows", _reflections, on_gpu, _applied, 11, 1),
    Call("the same and its gradient", _reflections, on_gpu, _both, 23, 2),
    Call("the same operator once more", lambda: on_gpu(*_reflections()), same, _applied, 4, 1),
    Call("Householder of NumPy arrays", lambda: (draw(256, 64), draw(32, 256)), same, _applied, 7, 2, 1),
    Call("Cayley, the gradient of 64 matrices", _cayley, on_gpu, lambda p, ct: iso.Cayley(p).matrix_vjp(ct), 2, 1),
    Call("a recurrence over Householder, whose W is kept", _sequence, same, iso.recurrence, 3, 2, 1),
    Call("its gradients", _sequence_and_states, same, _pulled, 16, 2, 1),
    Call("an ensemble of three, whose W are kept", _ensemble, same, iso.recurrence, 9, 2, 1),
    Call("the delta rule", _delta, same, _ruled, 13, 3, 1),
    Call("its gradients", _delta, first(_ruled), _summed, 31, 3, 1),
    Call("it.rum, T = 10", _unit, same, it.rum, 21, 2, 1),
    Call("its gradients", _unit, first(it.rum), _summed, 27, 2, 1),
    Call("it.rum with a memory", _unit, same, _with_memory, 42, 2, 1),
    Call("its gradients, with that of the memory", _unit, _with_memory, _summed, 50, 2, 1, 1),
    Call("it.nn.LSTM, T = 10", _layer, same, _called, 21, 2, 1),
    Call("its gradients", _layer, first(_called), _summed, 26, 2, 1),
)
