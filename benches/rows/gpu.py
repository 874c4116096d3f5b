"""`backend="gpu"`, forward and backward: arrays that stay on the GPU, the same with copies, the CPU, and torch.

"isometry" is the NumPy face on `iso.gpu.Array`, waited for; "with copies" takes and returns NumPy arrays; "cpu" is the
same on the CPU. torch runs on CUDA where it has a device, its tensors there, else on the CPU; in full single precision,
as the shaders do: TF32, whose products keep 10 bits of a number's 23, is off.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import isometry as iso
from harness.row import TOLERANCE, Bar, Candidate, Results, Row, side
from harness.sizes import SOLVED
from isometry.cli.errors import Failure
from isometry.gpu import Array
from rows.torch import formulas
from rows.torch.delta import CHUNK, chunked

Given = Mapping[str, Any]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# of single precision over hundreds of steps
LONG = (1e-3, 1e-2)


def rows(quick: bool = False) -> Iterator[Row]:
    """With `quick` at sizes that a software adapter can serve, too."""
    try:
        iso.gpu.synchronize()
    except RuntimeError as error:
        raise Failure(f"gpu: {error}") from error
    with full_precision():
        for batch, n in ((64, 32), (256, 8)) if quick else ((4096, 32), (16384, 8)):
            yield of_cayley(batch, n)
        yield of_householder(128, 32, 32) if quick else of_householder(1024, 256, 256)
        yield of_recurrence(64, 8, 50) if quick else of_recurrence(512, 64, 784)
        yield of_delta(128, 2, 16) if quick else of_delta(4096, 16, 128)


@contextmanager
def full_precision() -> Iterator[None]:
    """torch's products on CUDA without TF32, those of cuDNN's recurrence too."""
    switches: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = False
    try:
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.allow_tf32 = value


def row(
    name: str,
    given: Mapping[str, np.ndarray],
    call: Callable[[Given], tuple[Any, Mapping[str, Any]]],
    label: str,
    torch_call: Callable[..., Tensor],
    flops: float,
    *,
    goal: float = 1.0,
    tolerance: tuple[float, float] = TOLERANCE,
    leaves: Mapping[str, Tensor] | None = None,
) -> Row:
    """The row of a function of arrays in single precision: `call` gives its value and its gradients from that of the
    value, `ct`; `torch_call` the value of the arrays with a gradient, or, where `leaves` are given, of x. The goal is a
    ratio to torch on CUDA.
    """
    given = {key: a.astype(np.float32) for key, a in given.items()}
    held, wide = {key: Array(a) for key, a in given.items()}, {key: a.astype(np.float64) for key, a in given.items()}
    tensors = {key: torch.from_numpy(a).to(DEVICE) for key, a in given.items()}
    peer = f"{label}, {DEVICE}"

    def ours(arrays: Given) -> Results:
        value, grads = call(arrays)
        return {"value": value, **{f"gradient of {key}": a for key, a in grads.items()}}

    def on_gpu(arrays: Given) -> Results:
        with iso.use_backend("gpu"):
            return ours(arrays)

    def waited() -> Results:
        found = on_gpu(held)
        iso.gpu.synchronize()
        return found

    def by_torch() -> Results:
        own = leaves or {key: tensors[key].clone().requires_grad_() for key in tensors if key != "ct"}
        out = torch_call(tensors["x"]) if leaves else torch_call(**own)
        grads = torch.autograd.grad(out, list(own.values()), tensors["ct"])
        if DEVICE != "cpu":
            torch.cuda.synchronize()
        return {"value": out.detach(), **{f"gradient of {key}": g for key, g in zip(own, grads, strict=True)}}

    return Row(
        name=name,
        ours=Candidate(
            "isometry", waited, lambda: {k: a.download() if type(a) is Array else a for k, a in waited().items()}
        ),
        peers=[
            side("with copies", lambda: on_gpu(given)),
            side("cpu", lambda: ours(given)),
            Candidate(peer, by_torch, lambda: {k: t.cpu().numpy() for k, t in by_torch().items()}),
        ],
        reference=lambda: ours(wide),
        bars=[Bar(peer, goal, goal, (peer,))] if DEVICE != "cpu" else [],
        flops=flops,
        tolerance=tolerance,
    )


def of_cayley(batch: int, n: int) -> Row:
    rng = np.random.default_rng(0)
    given = {"upper": 0.05 * rng.standard_normal((batch, n * (n - 1) // 2)), "ct": rng.standard_normal((batch, n, n))}
    index = (torch.arange(batch, device=DEVICE)[:, None], *torch.triu_indices(n, n, 1, device=DEVICE))

    def call(given: Given) -> tuple[Any, Mapping[str, Any]]:
        op = iso.Cayley(given["upper"])
        return op.matrix(), op.matrix_vjp(given["ct"])

    solve = lambda upper: formulas.cayley(torch.zeros(batch, n, n, device=DEVICE).index_put(index, upper))
    name, flops = f"gpu cayley {batch} x {n}", 6.0 * batch * n**3
    return row(name, given, call, "torch.linalg.solve", solve, flops, goal=5.0, tolerance=SOLVED)


def of_householder(n: int, m: int, batch: int) -> Row:
    rng = np.random.default_rng(0)
    shapes = {"u": (n, m), "x": (batch, n), "ct": (batch, n)}

    def call(given: Given) -> tuple[Any, Mapping[str, Any]]:
        op = iso.Householder(given["u"])
        grads, x_bar = op.apply_vjp(given["x"], given["ct"])
        return op.apply(given["x"]), {"u": grads["vectors"], "x": x_bar}

    given = {key: rng.standard_normal(shape) for key, shape in shapes.items()}
    flops = 12.0 * n * m * batch + 4.0 * m * m * batch + 3.0 * n * m * m
    return row(f"gpu householder {n}/{m}/B{batch}", given, call, "torch compact WY", formulas.wy_apply, flops)


def of_recurrence(n: int, batch: int, steps: int) -> Row:
    rng = np.random.default_rng(0)
    shapes = {"x": (steps, batch, 1), "v": (n, 1), "ct": (steps, batch, n)}
    given = {"w": np.linalg.qr(rng.standard_normal((n, n)))[0]}
    given |= {key: 0.1 * rng.standard_normal(shape) for key, shape in shapes.items()}

    def call(given: Given) -> tuple[Any, Mapping[str, Any]]:
        op = iso.Dense(given["w"])
        states = iso.recurrence(op, given["x"], given["v"])
        bars = iso.recurrence_vjp(op, given["x"], given["v"], states, given["ct"], check_states=False)
        return states, {"w": bars["transition"]["weight"], "v": bars["input_weight"]}

    layer: Any = torch.nn.RNN(1, n, bias=False).to(DEVICE)
    leaves = {"w": layer.weight_hh_l0, "v": layer.weight_ih_l0}
    with torch.no_grad():
        for key, leaf in leaves.items():
            leaf.copy_(torch.from_numpy(given[key]))
    name, flops = f"gpu recurrence {n}/B{batch}/T{steps}", 6.0 * steps * batch * n * n
    return row(name, given, call, "torch.nn.RNN", lambda x: layer(x)[0], flops, tolerance=LONG, leaves=leaves)


def of_delta(tokens: int, heads: int, size: int) -> Row:
    rng, shape = np.random.default_rng(0), (1, tokens, heads)
    given = {key: rng.standard_normal((*shape, size)) for key in ("q", "k", "v", "ct")}
    given["k"] /= np.linalg.norm(given["k"], axis=-1, keepdims=True)
    given |= {"beta": rng.random(shape), "g": -0.5 * rng.random(shape)}
    end = np.zeros((1, heads, size, size), np.float32)

    def call(given: Given) -> tuple[Any, Mapping[str, Any]]:
        q, k, v, beta, g, ct = (given[name] for name in ("q", "k", "v", "beta", "g", "ct"))
        bars = iso.delta_rule_vjp(q, k, v, beta, ct, end.astype(ct.dtype), g=g)
        return iso.delta_rule(q, k, v, beta, g=g)[0], {name: bars[name] for name in ("q", "k", "v", "beta", "g")}

    name, flops = f"gpu delta rule H{heads} K{size} T{tokens}", (20.0 * size + 15.0 * CHUNK) * size * tokens * heads
    return row(name, given, call, "chunks of torch", partial(chunked, sliced=False), flops, tolerance=LONG)
