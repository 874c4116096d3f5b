"""Layers, the delta rule and parametrised weights on a device of torch, beside torch's: what `gpu_report.py` times.

Forward and backward: each call by itself, and replayed from a CUDA graph; a layer also with `backend="gpu"` and on the
CPU, whose tensors are in the memory of the host.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

import isometry.torch as it
from weights import ways

Functions = dict[str, Callable[[], object]]
LAYERS = ("ScoRNN", "ExpRNN", "ORNN", "SoftORNN", "ScuRNN", "URNN", "EURNN", "GRU", "GORU", "LSTM", "RUM")
PARAMETRISATIONS = ("householder", "cayley", "matrix_exp")


def pairs(device: str, short: bool = False) -> Iterator[tuple[str, Functions]]:
    """A title and the functions to time, each of which waits for the device."""
    n, batch, steps = (16, 2, 5) if short else (256, 128, 200)
    x = torch.randn(steps, batch, 32, device=device)
    torchs = {"RNN": nn.RNN(32, n), "GRU": nn.GRU(32, n), "LSTM": nn.LSTM(32, n)}
    peers = {f"torch {name}": waited(trained(layer.to(device), x)) for name, layer in torchs.items()}
    for name in LAYERS:
        torch.compiler.reset()  # it compiles the same function for some classes only
        layer = getattr(it.nn, name)(32, n)
        here = trained(copy.deepcopy(layer), x.cpu())
        sides = {**called(trained(layer.to(device), x), device), "the CPU": here}
        if device.startswith("cuda"):
            sides['backend="gpu"'] = on_the_gpu(here)
            sides["compiled"] = waited(trained(torch.compile(layer, mode="reduce-overhead"), x))
        yield f"{name}, n = {n}, B = {batch}, T = {steps}", {**sides, **peers}
    (rule,) = rules((2, steps, 4), n // 4, False, (device,))
    yield f"delta rule, T = {steps}", called(rule, device)
    tokens, heads, size = (70, 2, 16) if short else (4096, 16, 128)
    for gated in (False, True):
        name = f"{'gated ' if gated else ''}delta rule, T = {tokens}, {heads} heads of {size}"
        yield name, of_a_model(device, tokens, heads, size, gated)
    makes = ways()
    for name in PARAMETRISATIONS:
        sides = {}
        for side in ("isometry", "torch"):
            linear = makes[f"{side} {name}"](nn.Linear(n, 2 * n, device=device), "weight")
            sides[side] = waited(trained(linear, torch.randn(batch, n, device=device)))
        yield f"orthogonal weight, {2 * n} x {n}, {name}", sides


def apart(functions: Functions) -> dict[str, float]:
    """For each side on a device the largest relative difference of a gradient from that of the CPU, if it is a side."""
    if "the CPU" not in functions:
        return {}
    expected: Any = functions["the CPU"]()
    found: dict[str, Any] = {name: functions[name]() for name in ("isometry", 'backend="gpu"') if name in functions}
    return {name: max(map(distance, side, expected)) for name, side in found.items()}


def distance(gradient: Tensor, expected: Tensor) -> float:
    return float((gradient.cpu() - expected).norm() / expected.norm().clamp(min=1e-6))


def waited(call: Callable[[], object]) -> Callable[[], object]:
    """The call, and what it has left to the device."""

    def run() -> object:
        found = call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return found

    return run


def called(call: Callable[[], object], device: str) -> Functions:
    """The call, and on CUDA the same replayed from a graph."""
    if not device.startswith("cuda"):
        return {"isometry": call}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return {"isometry": waited(call), "in a graph": waited(graph.replay)}


def on_the_gpu(call: Callable[[], object]) -> Callable[[], object]:
    """The call with `backend="gpu"`, whose results are back on the host."""

    def run() -> object:
        with it.use_backend("gpu"):
            return call()

    return run


def trained(module: nn.Module, x: Tensor) -> Callable[[], object]:
    """A result, and the gradients of its parameters."""

    def call() -> object:
        out = module(x)
        out = out[0] if isinstance(out, tuple) else out
        return torch.autograd.grad(out.abs().square().sum(), [p for p in module.parameters() if p.requires_grad])

    return call


def rules(shape: tuple[int, ...], size: int, gated: bool, *places: tuple[Any, ...]) -> list[Callable[[], object]]:
    """The delta rule and its gradients, of tensors of this shape (B, T, heads) on each device, in a dtype."""
    q, k = (nn.functional.normalize(torch.randn(*shape, size), dim=-1) for _ in range(2))
    given = [q, k, torch.randn(*shape, size), torch.rand(shape), *([-0.1 * torch.rand(shape)] if gated else [])]

    def rule(place: tuple[Any, ...]) -> Callable[[], object]:
        leaves = [t.to(*place, copy=True).requires_grad_() for t in given]

        def call() -> object:
            out, _ = it.delta_rule(*leaves[:4], g=leaves[4] if gated else None)
            return torch.autograd.grad(out.square().sum(), leaves)

        return call

    return [rule(place) for place in places]


def of_a_model(device: str, tokens: int, heads: int, size: int, gated: bool) -> Functions:
    """The delta rule at the size of a language model."""
    there, here, half = rules((1, tokens, heads), size, gated, (device,), ("cpu",), (device, torch.bfloat16))
    sides = {"isometry": waited(there), "the CPU": here}
    if device.startswith("cuda"):
        # in half precision by flash-linear-attention where it is installed
        sides |= {'backend="gpu"': on_the_gpu(here), "bfloat16": waited(half)}
    return sides
