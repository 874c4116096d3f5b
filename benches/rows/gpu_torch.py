"""Layers, the delta rule and parametrised weights on a device of torch, beside torch's: what `gpu_report.py` times."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

import isometry.torch as it

Functions = dict[str, Callable[[], object]]
LAYERS = ("ScoRNN", "ExpRNN", "ORNN", "SoftORNN", "ScuRNN", "URNN", "EURNN", "GRU", "GORU", "RUM")
PARAMETRISATIONS = ("householder", "cayley", "matrix_exp")


def pairs(device: str, short: bool = False) -> Iterator[tuple[str, Functions]]:
    """A title and the functions to time, each of which waits for the device."""
    n, batch, steps = (16, 2, 5) if short else (256, 128, 200)
    x = torch.randn(steps, batch, 32, device=device)
    torchs = {"RNN": nn.RNN(32, n), "GRU": nn.GRU(32, n)}
    peers = {f"torch {name}": trained(layer.to(device), x) for name, layer in torchs.items()}
    for name in LAYERS:
        layer = getattr(it.nn, name)(32, n).to(device)
        yield f"{name}, n = {n}, B = {batch}, T = {steps}", {"isometry": trained(layer, x), **peers}
    yield f"delta rule, T = {steps}", {"isometry": delta(device, steps, n // 4)}
    for name in PARAMETRISATIONS:
        sides = {}
        for side, module in (("isometry", it.parametrizations), ("torch", nn.utils.parametrizations)):
            linear = module.orthogonal(nn.Linear(n, 2 * n, device=device), orthogonal_map=name)
            sides[side] = trained(linear, torch.randn(batch, n, device=device))
        yield f"orthogonal weight, {2 * n} x {n}, {name}", sides


def waited(call: Callable[[], object], device: str) -> Callable[[], object]:
    """The call, and what it has left to the device."""

    def run() -> object:
        found = call()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return found

    return run


def trained(module: nn.Module, x: Tensor) -> Callable[[], object]:
    """A result, and the gradients of its parameters."""

    def call() -> object:
        out = module(x)
        out = out[0] if isinstance(out, tuple) else out
        return torch.autograd.grad(out.abs().square().sum(), [p for p in module.parameters() if p.requires_grad])

    return waited(call, x.device.type)


def delta(device: str, steps: int, n: int) -> Callable[[], object]:
    q, k, v = (torch.randn(2, steps, 4, n, device=device, requires_grad=True) for _ in range(3))
    beta = torch.rand(2, steps, 4, device=device)

    def call() -> object:
        out, _ = it.delta_rule(q, nn.functional.normalize(k, dim=-1), v, beta)
        return torch.autograd.grad(out.square().sum(), (q, k, v))

    return waited(call, device)
