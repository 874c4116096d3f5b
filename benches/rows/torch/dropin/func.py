"""Inside torch.func beside outside: a gradient by `grad` and by `backward()`, models by `vmap` and one by one, an
ensemble in one call and in as many as it has members.

Both sides of a row run the same kernels, so that a row shows what the transform, or the loop, costs. Bars: `grad`
within 1.5 times of `backward()`, the others no slower than the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap

import isometry.torch as it
from harness.row import Bar, Candidate, Row, named, side
from rows.torch.sides import doubled

STEPS, BATCH, INPUTS, N, MODELS, ENSEMBLE = 100, 32, 8, 128, 4, 8
# relative errors through 100 steps
TOLERANCE = (1e-4, 1e-3)
BACKWARD, LOOP = Bar("backward()", 1 / 1.5, 1 / 1.2), Bar("loop", 1.0, 1.2)

Loss = Callable[..., Tensor]


def rows() -> Iterator[Row]:
    rng = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(shape, generator=rng)
    x, v = draw(STEPS, BATCH, INPUTS), draw(N, INPUTS)
    upper, vectors = 0.1 * draw(N * (N - 1) // 2), draw(N, 16)
    sizes = f"n{N} B{BATCH} T{STEPS}"
    states = lambda kind: lambda p, v: it.recurrence(kind(p), x.to(v.dtype), v).square().sum()
    gates = lambda w, u: it.gru(x.to(u.dtype), w, u, None).square().sum()
    yield gradient(f"func.grad recurrence cayley {sizes}", states(it.Cayley), (upper, v))
    yield gradient(f"func.grad recurrence 16 reflections {sizes}", states(it.Householder), (vectors, v))
    yield gradient(f"func.grad gru {sizes}", gates, (draw(3, N, N) / N**0.5, draw(3, N, INPUTS)))
    many = draw(1024, N)
    applied = lambda p: it.Householder(p)(many.to(p.dtype)).pow(3).sum()
    yield gradient(f"func.grad apply n{N} m16 1024 rows", applied, (vectors,))
    yield models(f"vmap(grad) {MODELS} ScoRNN {sizes}", x)
    yield ensemble(f"ensemble {ENSEMBLE} cayley {sizes}", x, draw)


def gradient(name: str, loss: Loss, at: Sequence[Tensor]) -> Row:
    every = tuple(range(len(at)))
    transformed = grad(loss, argnums=every)

    def backward(at: Sequence[Tensor]) -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in at]
        return torch.autograd.grad(loss(*leaves), leaves)

    sides = side("torch.func.grad", lambda: transformed(*at)), side("backward()", lambda: backward(at))
    return row(name, *sides, lambda: backward([t.double() for t in at]), BACKWARD)


def models(name: str, x: Tensor) -> Row:
    torch.manual_seed(0)
    each = [it.nn.ScoRNN(INPUTS, N) for _ in range(MODELS)]
    parameters, buffers = stack_module_state(each)  # type: ignore[arg-type]

    def loss(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return functional_call(each[0], (parameters, buffers), (x,))[0].square().sum()  # type: ignore[no-any-return]

    mapped = vmap(grad(loss))

    def one_by_one(models: Sequence[torch.nn.Module], x: Tensor) -> list[tuple[Tensor, ...]]:
        return [torch.autograd.grad(m(x)[0].square().sum(), list(m.parameters())) for m in models]

    def results(models: Sequence[torch.nn.Module], x: Tensor) -> list[Tensor]:
        return [torch.stack(grads) for grads in zip(*one_by_one(models, x), strict=True)]

    def reference() -> list[Tensor]:
        return results([doubled(layer, INPUTS, N) for layer in each], x.double())

    ours = Candidate(
        "vmap(grad)",
        lambda: mapped(parameters, buffers),
        lambda: named([mapped(parameters, buffers)[key].detach() for key, _ in each[0].named_parameters()]),
    )
    peer = Candidate("loop", lambda: one_by_one(each, x), lambda: named(results(each, x)))
    return row(name, ours, peer, reference, LOOP)


def ensemble(name: str, x: Tensor, draw: Callable[..., Tensor]) -> Row:
    at = 0.1 * draw(ENSEMBLE, N * (N - 1) // 2), draw(ENSEMBLE, N, INPUTS)

    def computed(at: Sequence[Tensor], one_by_one: bool) -> tuple[Tensor, ...]:
        upper, v = leaves = [t.detach().requires_grad_() for t in at]
        own = x.to(v.dtype)
        if one_by_one:
            states = [it.recurrence(it.Cayley(u), own, w) for u, w in zip(upper, v, strict=True)]
            value = sum((part.square().sum() for part in states[1:]), states[0].square().sum())
        else:
            value = it.recurrence(it.Cayley(upper), own[:, None], v).square().sum()
        return torch.autograd.grad(value, leaves)

    sides = side("one call", lambda: computed(at, False)), side(f"{ENSEMBLE} calls", lambda: computed(at, True))
    return row(name, *sides, lambda: computed([t.double() for t in at], True), LOOP)


def row(name: str, ours: Candidate, peer: Candidate, reference: Callable[[], Sequence[Tensor]], bar: Bar) -> Row:
    """A row that compares gradients alone."""
    return Row(name, ours, [peer], lambda: named(reference()), [bar], tolerance=TOLERANCE)
