"""Operators and layers inside `torch.compile`: its graph calls the kernels.

The peer of an operator is the graph of its formula, of `isometry.torch.formulas`, which torch traces, differentiates
and, if there is a C++ compiler, fuses (backend "inductor"; without one the graphs run as they are, "aot_eager"). The
peer of a layer is the eager layer.
"""

import shutil
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import isometry.torch as it
from harness.row import Bar, Row
from harness.sizes import SOLVED
from isometry.torch import formulas
from rows.torch.formulas import Mesh, modrelu
from rows.torch.operators import draw_vectors
from rows.torch.sides import Call, Draw, loop, row

BATCH = 50
UNITS, STEPS, INPUTS = 512, 200, 2  # of the EURNN
PARAMETERS = tuple(f"{name}_l0" for name in ("weight_ih", "theta", "phi", "phases", "activation_bias"))
MESH = Mesh(UNITS, 2)


def rows() -> Iterator[Row]:
    n = 190
    yield make_row(
        f"compiled cayley {n}/B{BATCH}",
        lambda: {"upper": 0.05 * torch.randn(n * (n - 1) // 2), "x": torch.randn(BATCH, n)},
        lambda upper, x: it.Cayley(upper).apply(x),
        lambda upper, x: x @ formulas.cayley.matrix(upper, None, None, None).mT,
        6.0 * n**3 + 6.0 * BATCH * n * n,
    )
    ours, formula = lambda u, x: it.Householder(u).apply(x), lambda u, x: formulas.householder.apply(u, None, None, x)
    name, flops = f"compiled householder 512/16/B{BATCH}", 12.0 * 512 * 16 * BATCH
    yield make_row(name, draw_vectors(512, 16, BATCH), ours, formula, flops)
    yield eurnn()


def backend() -> str:
    """The compiler of torch that works here."""
    return "inductor" if any(map(shutil.which, ("c++", "g++", "clang++"))) else "aot_eager"


def compiled(f: Any) -> Any:
    return torch.compile(f, backend=backend(), fullgraph=True)


def make_row(name: str, draw: Draw, kernel: Call, formula: Call, flops: float) -> Row:
    """The same function of a parameter and of x, by the kernels and by the formula."""
    peers, bars = {f"traced formula, {backend()}": compiled(formula)}, [Bar("the traced formula", 1.0, 2.0)]
    return row(name, draw, compiled(kernel), peers, bars, flops, reference=formula, tolerance=SOLVED)


def eurnn() -> Row:
    """The compiled layer, at most 1.2 times as long as the eager one; the reference is a loop of torch operations."""
    layer = it.nn.EURNN(INPUTS, UNITS)

    def eager(*given: Tensor) -> Tensor:
        *weights, x = given
        named = dict(zip(PARAMETERS, weights, strict=True))
        found: Tensor = torch.func.functional_call(layer, named, (x,))[0]
        return found

    def by_loop(weight: Tensor, theta: Tensor, phi: Tensor, phases: Tensor, bias: Tensor, x: Tensor) -> Tensor:
        v, apply = torch.view_as_complex(weight), MESH.by_slices(theta, phi, phases)
        return loop(lambda h, drive: modrelu(apply(h) + drive, bias), x.to(v.dtype) @ v.mT)

    def draw() -> dict[str, Tensor]:
        drawn = {name: p.detach() for name, p in layer.named_parameters()}
        return {name: drawn[name] for name in PARAMETERS} | {"x": torch.randn(STEPS, BATCH, INPUTS)}

    name, flops = f"compiled EURNN n{UNITS} B{BATCH} T{STEPS}", 36.0 * UNITS * (MESH.layers + INPUTS) * BATCH * STEPS
    peers, bars = {"eager layer": eager}, [Bar("eager", 1 / 1.2, 1.0)]
    # W is unitary and modReLU nearly the identity: rounding errors of all steps add up
    more: dict[str, Any] = {"fixed": ("x",), "reference": by_loop, "tolerance": (1e-4, 1e-3)}
    return row(name, draw, compiled(eager), peers, bars, flops, **more)
