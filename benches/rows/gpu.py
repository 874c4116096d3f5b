"""`backend="gpu"`, forward and backward: arrays that stay on the GPU, the same with copies, the CPU, and torch.

"isometry" is the NumPy face on `iso.gpu.Array`, waited for; "with copies" takes and returns NumPy arrays; "cpu" is the
same on the CPU. torch runs on CUDA where it has a device, its tensors there, else on the CPU; in full single precision,
as the shaders do: TF32, whose products keep 10 bits of a number's 23, is off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

import isometry as iso
from harness.row import Bar, Candidate, Results, Row, side
from harness.sizes import SOLVED
from isometry.cli.errors import Failure
from isometry.gpu import Array
from rows.torch import formulas
from rows.torch.delta import CHUNK, chunked, triangular

Given = Mapping[str, Any]
Call = Callable[[Given], Results]
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


def make_row(
    name: str, given: Mapping[str, np.ndarray], call: Call, torch_call: Call, label: str, goal: float, **keywords: Any
) -> Row:
    """The row of a function of arrays, its own and torch's; the goal is a ratio to torch on CUDA."""
    held = {key: Array(a) for key, a in given.items()}
    tensors = {key: torch.from_numpy(a).to(DEVICE) for key, a in given.items()}
    torchs = f"{label}, {DEVICE}"

    def on_gpu(arrays: Given) -> Results:
        with iso.use_backend("gpu"):
            return call(arrays)

    def waited() -> Results:
        found = on_gpu(held)
        iso.gpu.synchronize()
        return found

    def by_torch() -> Results:
        found = torch_call(tensors)
        if DEVICE != "cpu":
            torch.cuda.synchronize()
        return found

    def downloaded() -> Results:
        return {key: a.download() if type(a) is Array else a for key, a in waited().items()}

    wide = {key: a.astype(np.float64) for key, a in given.items()}
    peers = [
        side("with copies", lambda: on_gpu(given)),
        side("cpu", lambda: call(given)),
        Candidate(torchs, by_torch, lambda: {k: t.cpu().numpy() for k, t in by_torch().items()}),
    ]
    return Row(
        name=name,
        ours=Candidate("isometry", waited, downloaded),
        peers=peers,
        reference=lambda: call(wide),
        bars=[Bar(torchs, goal, goal, (torchs,))] if DEVICE != "cpu" else [],
        **keywords,
    )


def pulled(out: Tensor, leaves: Mapping[str, Tensor], ct: Tensor) -> Results:
    """The value, and the gradients from that of the value."""
    found = torch.autograd.grad(out, list(leaves.values()), ct)
    return {"value": out.detach(), **{f"gradient of {k}": g for k, g in zip(leaves, found, strict=True)}}


def of_cayley(batch: int, n: int) -> Row:
    rng = np.random.default_rng(0)
    upper = (0.05 * rng.standard_normal((batch, n * (n - 1) // 2))).astype(np.float32)
    ct = rng.standard_normal((batch, n, n)).astype(np.float32)

    def call(given: Given) -> Results:
        op = iso.Cayley(given["upper"])
        return {"value": op.matrix(), "gradient of upper": op.matrix_vjp(given["ct"])["upper"]}

    above = torch.triu_indices(n, n, 1, device=DEVICE)
    index = (torch.arange(batch, device=DEVICE)[:, None], *above)

    def by_solve(given: Given) -> Results:
        leaf = given["upper"].clone().requires_grad_()
        p = torch.zeros(batch, n, n, device=DEVICE).index_put(index, leaf)
        return pulled(formulas.cayley(p), {"upper": leaf}, given["ct"])

    given = {"upper": upper, "ct": ct}
    flops = 6.0 * batch * n**3
    return make_row(
        f"gpu cayley {batch} x {n}", given, call, by_solve, "torch.linalg.solve", goal=5.0, flops=flops,
        tolerance=SOLVED,
    )  # fmt: skip


def of_householder(n: int, m: int, batch: int) -> Row:
    rng = np.random.default_rng(0)
    shapes = {"vectors": (n, m), "x": (batch, n), "ct": (batch, n)}
    given = {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}

    def call(given: Given) -> Results:
        op = iso.Householder(given["vectors"])
        grads, x_bar = op.apply_vjp(given["x"], given["ct"])
        return {"value": op.apply(given["x"]), "gradient of vectors": grads["vectors"], "gradient of x": x_bar}

    def by_wy(given: Given) -> Results:
        leaves = {key: given[key].clone().requires_grad_() for key in ("vectors", "x")}
        return pulled(formulas.wy_apply(leaves["vectors"], leaves["x"]), leaves, given["ct"])

    flops = 12.0 * n * m * batch + 4.0 * m * m * batch + 3.0 * n * m * m
    return make_row(f"gpu householder {n}/{m}/B{batch}", given, call, by_wy, "torch compact WY", goal=1.0, flops=flops)


def of_recurrence(n: int, batch: int, steps: int) -> Row:
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    shapes = {"x": (steps, batch, 1), "v": (n, 1), "ct": (steps, batch, n)}
    given = {"w": q.astype(np.float32)}
    given |= {key: (0.1 * rng.standard_normal(shape)).astype(np.float32) for key, shape in shapes.items()}

    def call(given: Given) -> Results:
        op = iso.Dense(given["w"])
        states = iso.recurrence(op, given["x"], given["v"])
        bars = iso.recurrence_vjp(op, given["x"], given["v"], states, given["ct"], check_states=False)
        return {"value": states, "gradient of w": bars["transition"]["weight"], "gradient of v": bars["input_weight"]}

    layer = torch.nn.RNN(1, n, bias=False).to(DEVICE)
    weights = dict(layer.named_parameters())
    leaves = {"w": weights["weight_hh_l0"], "v": weights["weight_ih_l0"]}
    with torch.no_grad():
        for key, leaf in leaves.items():
            leaf.copy_(torch.from_numpy(given[key]))

    def by_rnn(given: Given) -> Results:
        return pulled(layer(given["x"])[0], leaves, given["ct"])

    flops = 6.0 * steps * batch * n * n
    return make_row(
        f"gpu recurrence {n}/B{batch}/T{steps}", given, call, by_rnn, "torch.nn.RNN", goal=1.0, flops=flops,
        tolerance=LONG,
    )  # fmt: skip


def of_delta(tokens: int, heads: int, size: int) -> Row:
    rng, shape = np.random.default_rng(0), (1, tokens, heads)
    names = "q", "k", "v", "beta", "g"
    given = {key: rng.standard_normal((*shape, size)) for key in ("q", "k", "v", "ct")}
    given["k"] /= np.linalg.norm(given["k"], axis=-1, keepdims=True)
    given |= {"beta": rng.random(shape), "g": -0.5 * rng.random(shape)}
    given |= {"state_bar": np.zeros((1, heads, size, size))}
    given = {key: a.astype(np.float32) for key, a in given.items()}

    def call(given: Given) -> Results:
        q, k, v, beta, g = (given[name] for name in names)
        bars = iso.delta_rule_vjp(q, k, v, beta, given["ct"], given["state_bar"], g=g)
        return {
            "value": iso.delta_rule(q, k, v, beta, g=g)[0],
            **{f"gradient of {name}": bars[name] for name in names},
        }

    def by_chunks(given: Given) -> Results:
        leaves = {name: given[name].clone().requires_grad_() for name in names}
        out = chunked(**leaves, solve=triangular, sliced=False)
        return pulled(out, leaves, given["ct"])

    flops = (20.0 * size + 15.0 * CHUNK) * size * tokens * heads
    name = f"gpu delta rule H{heads} K{size} T{tokens}"
    return make_row(name, given, call, by_chunks, "chunks of torch", goal=1.0, flops=flops, tolerance=LONG)
