"""The orthogonal parametrisations of Isometry, torch and geotorch, and our operators: what a training step costs.

    python benches/beside.py [--threads N] [--json FILE]

Each side makes its orthogonal matrices from its free parameters, forward and backward, in float32, as its users call
it: default options, and torch's recurrent layer under `parametrize.cached`, so that its matrix is made once per step,
with the weights of this package also under its `register()`.
All sides take turns in one process. Before timing, every side takes a step of AdamW without weight decay, after which
its matrix must be another one and orthogonal. geotorch is measured where it is installed (`pip install geotorch`).
"""

import argparse
import json
import statistics
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

import isometry.torch as it
from harness.report import facts, version
from harness.timing import alternate
from isometry.integrations.torch import register
from weights import ways

SECONDS, ROUNDS = 8.0, 5  # of a column in all; samples of a side at least
UNITS, STEPS, BATCH = 190, 1000, 20  # of the recurrent layers
ORTHOGONAL = 1e-3  # the largest entry of |W^T W - I| that passes for orthogonal here: a broken side has about 1
COLUMNS = {
    "matrix 128": (128, 128),
    "matrix 512": (512, 512),
    "4096 of 4 x 4": (4096, 4, 4),
    "RNN layer": (UNITS, UNITS),
}


class Weight(nn.Module):
    """A weight on its own, for the sides that parametrise one of a module."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(*shape) / shape[-1] ** 0.5)

    def forward(self) -> Tensor:
        return self.weight


class Operator(nn.Module):
    """An operator of the package as a module: its matrix from its arrays."""

    def __init__(self, kind: Callable[[Tensor], Any], array: Tensor) -> None:
        super().__init__()
        self.kind, self.array = kind, nn.Parameter(array)

    def forward(self) -> Tensor:
        return self.kind(self.array).matrix()


def matrices(shape: tuple[int, ...]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every side of a column of matrices: W and its gradient."""
    n, cotangent = shape[-1], torch.randn(shape)
    cayley = Operator(it.Cayley, torch.randn(*shape[:-2], n * (n - 1) // 2) * 0.05)
    modules = {name: make(Weight(*shape), "weight") for name, make in ways().items()}
    modules |= {"isometry.Cayley": cayley, "isometry.Householder": Operator(it.Householder, torch.randn(shape))}
    for name, module in modules.items():
        yield name, checked(name, module, module, cotangent, module)


def layers() -> Iterator[tuple[str, Callable[[], None]]]:
    """Every side of a recurrent layer with tanh: all states and all gradients."""
    x, cotangent = torch.randn(STEPS, BATCH, 2), torch.randn(STEPS, BATCH, UNITS)
    for name, kind in (("isometry.Cayley", it.nn.ScoRNN), ("isometry.Householder", it.nn.ORNN)):
        own = kind(2, UNITS, nonlinearity="tanh")
        yield name, checked(name, own, lambda own=own: own(x)[0], cotangent, own.recurrent_matrix)
    for name, make in ways().items():
        layer: Any = make(nn.RNN(2, UNITS), "weight_hh_l0")
        around = register if name.startswith("isometry") else nullcontext

        def states(layer: Any = layer, around: Any = around) -> Any:
            with around():
                return layer(x)[0]

        yield name, checked(name, layer, states, cotangent, lambda layer=layer: layer.weight_hh_l0)


def checked(
    name: str, module: nn.Module, call: Callable[[], Tensor], cotangent: Tensor, matrix: Callable[[], Tensor]
) -> Callable[[], None]:
    """The step of a side; an error unless a training step changes W, and leaves it orthogonal."""

    def step() -> None:
        module.zero_grad()
        with parametrize.cached():
            (call() * cotangent).sum().backward()

    before = matrix().detach().clone()
    optimiser = torch.optim.AdamW(module.parameters(), 1e-2, weight_decay=0.0)
    step()
    optimiser.step()
    w = matrix().detach()
    error = float((w.mT @ w - torch.eye(w.shape[-1])).abs().max())
    if not error < ORTHOGONAL or not (w - before).abs().max() > 1e-4:
        raise ArithmeticError(f"{name}: |W^T W - I| reaches {error:.1e} after a step")
    return step


def measured() -> dict[str, dict[str, float]]:
    """Milliseconds per step: side -> column -> median."""
    table: dict[str, dict[str, float]] = {}
    for column, shape in COLUMNS.items():
        torch.manual_seed(0)
        sides = dict(layers() if column == "RNN layer" else matrices(shape))
        for name, samples in alternate(sides, SECONDS, min_rounds=ROUNDS).items():
            table.setdefault(name, {})[column] = 1e3 * statistics.median(samples)
        print(column + "".join(f"\n    {name:22} {row[column]:10.3f} ms" for name, row in table.items()), flush=True)
    return table


def decay() -> dict[str, float]:
    """|W W^T - I| of a linear layer 8 -> 4, all by default, after a step of AdamW with its default weight decay."""
    makes, found = ways(), {}
    for name, default in (("torch", "householder"), ("geotorch", "expm")):
        if (make := makes.get(f"{name} {default}")) is None:
            continue
        layer: Any = make(nn.Linear(8, 4, bias=False), "weight")
        optimiser = torch.optim.AdamW(layer.parameters())
        layer(torch.randn(5, 8)).square().sum().backward()
        optimiser.step()
        w = layer.weight.detach()
        found[name] = float((w @ w.mT - torch.eye(4)).abs().max())
        print(f"{name}: |W W^T - I| of a linear layer 8 -> 4 after a step of AdamW is {found[name]:.1e}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, help="threads of all sides (default: torch's own number)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore", message=".*not part of single contiguous chunk.*")
    machine = facts(torch.get_num_threads(), {name: version(name) for name in ("torch", "geotorch")})
    figures = {"machine": machine, "milliseconds": measured(), "error_after_weight_decay": decay()}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
