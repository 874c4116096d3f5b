"""Inside torch.func beside outside: a gradient by `grad` and by `backward()`, models by `vmap` and one by one, an
ensemble in one call and in as many as it has members.

Both sides of a row run the same kernels, so that a row shows what the transform, or the loop, costs. Bars: `grad`
within 1.5 times of `backward()`, the others no slower than the loop.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import torch
from torch import Tensor, nn, randn
from torch.func import functional_call, grad, stack_module_state, vmap

import isometry.torch as it
from harness.row import Bar, Row
from rows.torch.sides import Call, row

STEPS, BATCH, INPUTS, N, MODELS, ENSEMBLE = 100, 32, 8, 128, 4, 8
SIZES = f"n{N} B{BATCH} T{STEPS}"
# relative errors through 100 steps
TOLERANCE = (1e-4, 1e-3)
BACKWARD, LOOP = Bar("backward()", 1 / 1.5, 1 / 1.2), Bar("loop", 1.0, 1.2)


def rows() -> Iterator[Row]:
    def states(p: Tensor, v: Tensor, x: Tensor, kind: Callable[[Tensor], it.Operator] = it.Cayley) -> Tensor:
        return it.recurrence(kind(p), x, v).square().sum()

    triangle, v = (N * (N - 1) // 2,), (N, INPUTS)
    reflected = lambda p, v, x: states(p, v, x, it.Householder)
    gates = lambda w, u, x: it.gru(x, 0.1 * w, u, None).square().sum()
    applied = lambda p, x: it.Householder(p)(x).pow(3).sum()
    yield gradient(f"recurrence cayley {SIZES}", states, triangle, v)
    yield gradient(f"recurrence 16 reflections {SIZES}", reflected, (N, 16), v)
    yield gradient(f"gru {SIZES}", gates, (3, N, N), (3, N, INPUTS))
    yield gradient(f"apply n{N} m16 1024 rows", applied, (N, 16), x=(1024, N))
    yield models(f"vmap(grad) {MODELS} ScoRNN {SIZES}")
    together = lambda p, v, x: it.recurrence(it.Cayley(p), x[:, None], v).square().sum()
    each = lambda p, v, x: sum(states(*own, x) for own in zip(p, v, strict=True))
    shapes = (ENSEMBLE, *triangle), (ENSEMBLE, *v)
    yield compared(
        f"ensemble {ENSEMBLE} cayley {SIZES}", backward(together), {f"{ENSEMBLE} calls": backward(each)}, LOOP, shapes
    )


def compared(
    name: str,
    ours: Call,
    peers: dict[str, Call],
    bar: Bar,
    shapes: Sequence[tuple[int, ...]],
    x: tuple[int, ...] = (STEPS, BATCH, INPUTS),
) -> Row:
    """A row of gradients alone, of parameters of these shapes."""
    draw = lambda: {f"p{k}": 0.1 * randn(shape) for k, shape in enumerate(shapes)} | {"x": randn(x)}
    return row(name, draw, ours, peers, [bar], gradients=False, tolerance=TOLERANCE)


def gradient(name: str, loss: Call, *shapes: tuple[int, ...], **x: tuple[int, ...]) -> Row:
    transformed = grad(loss, argnums=tuple(range(len(shapes))))
    return compared(f"func.grad {name}", transformed, {"backward()": backward(loss)}, BACKWARD, shapes, **x)


def backward(loss: Call) -> Call:
    """The gradients of all arguments but x, which is the last."""

    @torch.enable_grad()
    def pulled(*given: Tensor) -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in given[:-1]]
        return torch.autograd.grad(loss(*leaves, given[-1]), leaves)

    return pulled  # type: ignore[return-value]


def models(name: str) -> Row:
    each = cache(
        lambda: (torch.manual_seed(0), [it.nn.ScoRNN(INPUTS, N, nonlinearity="tanh") for _ in range(MODELS)])[1]
    )
    stacked = cache(lambda: stack_module_state(each()))  # type: ignore[arg-type]

    def loss(parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(each()[0], (parameters, buffers), (x,))[0].square().sum()  # type: ignore[no-any-return]

    mapped = vmap(grad(loss), in_dims=(0, 0, None))
    ours = lambda x: tuple(mapped(*stacked(), x).values())

    @torch.enable_grad()
    def loop(models: Sequence[nn.Module], x: Tensor) -> list[Tensor]:
        grads = [torch.autograd.grad(m(x)[0].square().sum(), list(m.parameters())) for m in models]
        return [torch.stack(own) for own in zip(*grads, strict=True)]

    peers, wide = {"loop": lambda x: loop(each(), x)}, lambda x: loop([copy.deepcopy(m).double() for m in each()], x)
    draw = lambda: {"x": randn(STEPS, BATCH, INPUTS)}
    return row(name, draw, ours, peers, [LOOP], gradients=False, reference=wide, tolerance=TOLERANCE)
