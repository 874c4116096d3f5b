"""The six recurrences: h_t = phi(W h_{t-1} + V x_t), forward and backward, all states in the loss.

Flops per pass: three products of 2 n^2 T B if W is dense, 12 n m T B if its m factors are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench import formulas
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row
from isometry.cli.bench.workloads import RECURRENCES, Workload

# through up to 1020 steps; a gradient jumps by up to 4e-3 if rounding moves one state across a kink, in torch too
TOLERANCE = (2e-4, 1e-2)


def rows() -> Iterator[Row]:
    for work in RECURRENCES:
        yield make_row(work)


def make_row(work: Workload) -> Row:
    """The row of one workload, all tensors drawn from a seed."""
    torch.manual_seed(0)
    n, m, batch, steps = work.n, work.m, work.batch, work.steps
    x, cotangent = torch.randn(steps, batch, work.inputs), torch.randn(steps, batch, n)
    signs = torch.ones(n)
    signs[n // 2 :] = -1
    p = torch.randn(n, n) * 0.05 if m == 0 else torch.tril(torch.randn(n, m))
    initial = {"transition": p, "input_weight": torch.randn(n, work.inputs) * 0.1, "bias": torch.zeros(n)}
    pick = {"transition": formulas.packed} if m == 0 else {}

    def dense_loop(dtype: torch.dtype) -> Candidate:
        leaves = {k: v.to(dtype, copy=True).requires_grad_() for k, v in initial.items()}
        forward = loop(leaves, x.to(dtype), signs.to(dtype) if m == 0 else None)
        return differentiable("torch loop, dense W", leaves, forward, cotangent.to(dtype), pick)

    def reference() -> dict[str, Tensor]:
        results = dense_loop(torch.float64).results
        assert results is not None
        return results()

    peers = [dense_loop(torch.float32)]
    if 0 < m <= 64:
        leaves = {k: v.clone().requires_grad_() for k, v in initial.items()}
        peers.append(differentiable("torch loop, WY factors", leaves, wy_loop(leaves, x), cotangent))
    orthogonal = tuple(peer.name for peer in peers)
    peers.append(unconstrained(work, x, cotangent))
    plan = work.route
    width = n if plan == "dense" else 2 * m
    return Row(
        name=str(work),
        ours=ours(work, initial, x, signs, cotangent),
        peers=peers,
        reference=reference,
        bars=[Bar("best orthogonal", 1.7, 2.0, orthogonal), Bar("torch.nn.RNN", 1.5, 2.0, ("torch.nn.RNN relu",))],
        flops=6.0 * n * width * batch * steps,
        tolerance=TOLERANCE,
        share=(0.65, 0.80) if n >= 170 and batch >= 20 else None,
        plan=plan,
    )


def ours(work: Workload, initial: dict[str, Tensor], x: Tensor, signs: Tensor, cotangent: Tensor) -> Candidate:
    leaves = {k: v.clone() for k, v in initial.items()}
    if work.m == 0:
        leaves["transition"] = formulas.packed(initial["transition"])
    leaves = {k: v.requires_grad_() for k, v in leaves.items()}

    transition, weight, bias = leaves["transition"], leaves["input_weight"], leaves["bias"]

    def forward() -> Tensor:
        if work.m == 0:
            cayley = it.Cayley(transition, signs=signs)
            return it.recurrence(cayley, x, weight, activation="modrelu", activation_bias=bias)
        return it.recurrence(it.Householder(transition), x, weight, bias=bias, activation="leaky_relu")

    return differentiable("isometry", leaves, forward, cotangent)


def loop(leaves: dict[str, Tensor], x: Tensor, signs: Tensor | None) -> Callable[[], Tensor]:
    """One addmm and the activation per step; `unbind` because x[t] would make the backward quadratic in T."""

    def forward() -> Tensor:
        p, weight, bias = leaves["transition"], leaves["input_weight"], leaves["bias"]
        transposed = (formulas.wy_matrix(p) if signs is None else formulas.cayley(formulas.skew(p), signs)).T
        activate = formulas.leaky_relu if signs is None else formulas.modrelu
        h, states = x.new_zeros(x.shape[1], p.shape[0]), []
        for drive in (x @ weight.T).unbind(0):
            h = activate(torch.addmm(drive, h, transposed), bias)
            states.append(h)
        return torch.stack(states)

    return forward


def wy_loop(leaves: dict[str, Tensor], x: Tensor) -> Callable[[], Tensor]:
    """Few reflections: h W^T = h - (h U) (T^-T U^T) per step, 4 n m flops instead of 2 n^2."""

    def forward() -> Tensor:
        u, bias = leaves["transition"], leaves["bias"]
        right = torch.linalg.inv(formulas.wy_triangle(u)).T @ u.T
        h, states = x.new_zeros(x.shape[1], u.shape[0]), []
        for drive in (x @ leaves["input_weight"].T).unbind(0):
            h = formulas.leaky_relu(drive + h - (h @ u) @ right, bias)
            states.append(h)
        return torch.stack(states)

    return forward


def unconstrained(work: Workload, x: Tensor, cotangent: Tensor) -> Candidate:
    """torch's fused RNN with a free matrix: a different function, so values are not compared."""
    layer = torch.nn.RNN(work.inputs, work.n, nonlinearity="relu")
    torch.nn.init.orthogonal_(layer.get_parameter("weight_hh_l0"))

    def run() -> None:
        layer.zero_grad()
        states, _ = layer(x)
        (states * cotangent).sum().backward()

    return Candidate("torch.nn.RNN relu", run, None)
