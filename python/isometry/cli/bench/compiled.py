"""Operators inside `torch.compile`: its graph calls the kernels; the peer is the graph of the operator's formula.

The formulas are those of `isometry.torch.formulas`, which torch traces, differentiates and, if there is a C++ compiler,
fuses (backend "inductor"; without a compiler the graphs run as they are, backend "aot_eager").
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli.bench import cayley
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row
from isometry.torch import formulas

BATCH = 50
Apply = Callable[[Tensor, Tensor], Tensor]


def rows() -> Iterator[Row]:
    n, generator = 190, torch.Generator().manual_seed(0)
    upper = 0.05 * torch.randn(n * (n - 1) // 2, generator=generator)
    kernel: Apply = lambda upper, x: it.Cayley(upper).apply(x)
    formula: Apply = lambda upper, x: x @ formulas.cayley.matrix(upper, None, None, None).mT
    yield make_row("compiled cayley 190/B50", ("upper", upper), n, kernel, formula, 6.0 * n**3 + 6.0 * BATCH * n * n)
    n, m = 512, 16
    vectors = torch.tril(torch.randn(n, m, generator=generator))
    kernel = lambda vectors, x: it.Householder(vectors).apply(x)
    formula = lambda vectors, x: formulas.householder.apply(vectors, None, None, x)
    yield make_row("compiled householder 512/16/B50", ("vectors", vectors), n, kernel, formula, 12.0 * n * m * BATCH)


def backend() -> str:
    """The compiler of torch that works here."""
    return "inductor" if any(map(shutil.which, ("c++", "g++", "clang++"))) else "aot_eager"


def compiled(f: Any) -> Any:
    return torch.compile(f, backend=backend(), fullgraph=True)


def make_row(name: str, own: tuple[str, Tensor], n: int, kernel: Apply, formula: Apply, flops: float) -> Row:
    """The same function of a parameter and of x, by the kernels and by the formula."""
    generator = torch.Generator().manual_seed(1)
    key, parameter = own
    x, cotangent = (torch.randn(BATCH, n, generator=generator) for _ in range(2))

    def side(label: str, f: Apply, dtype: torch.dtype) -> Candidate:
        leaves = {k: t.to(dtype, copy=True).requires_grad_() for k, t in ((key, parameter), ("x", x))}
        return differentiable(label, leaves, lambda: f(leaves[key], leaves["x"]), cotangent.to(dtype))

    return Row(
        name=name,
        ours=side("isometry", compiled(kernel), torch.float32),
        peers=[side(f"traced formula, {backend()}", compiled(formula), torch.float32)],
        reference=side("float64", formula, torch.float64).results or dict,
        bars=[Bar("the traced formula", 1.0, 2.0)],
        flops=flops,
        tolerance=cayley.TOLERANCE,
    )
