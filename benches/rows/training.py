"""One whole training step of a scoRNN on the copying problem (n = 190, batch 20, 1,020 steps): forward, loss,
backward, RMSprop. The peer trains the same matrix with the loop of the recurrences' peers, the same readout, loss and
optimiser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import isometry.torch as it
from harness.row import Bar, Candidate, Results, Row
from isometry.cli.build import as_batch
from isometry.cli.tasks.copying import Copying
from rows.torch import formulas
from rows.torch.recurrences import scornn

N, BATCH, DELAY = 190, 20, 1000
TOLERANCE = (1e-4, 2e-3)  # of the loss; of the gradients, through 1,020 steps
ALPHA, RATE, RECURRENT_RATE = 0.9, 1e-3, 1e-4


def rows() -> Iterator[Row]:
    torch.manual_seed(0)
    source = Copying(length=DELAY, batch=BATCH)
    x, target = as_batch(source.draw(np.random.default_rng(0)))
    layer = it.nn.ScoRNN(source.inputs, N, nonlinearity="modrelu")
    readout = nn.Linear(N, source.outputs)
    nn.init.xavier_uniform_(readout.weight)
    nn.init.zeros_(readout.bias)
    start = initial(layer, readout)

    def states() -> Tensor:
        return layer(x)[0]

    recurrent = list(layer.recurrent_parameters())
    names = ("transition", "input_weight", "bias", "readout", "offset")
    leaves: dict[str, Tensor] = dict(zip(names, (recurrent[0], *rest_of(layer, readout, recurrent)), strict=True))
    mine = step("isometry", leaves, states, target, source.loss, {})
    yield Row(
        name=f"training step scoRNN n{N} B{BATCH} T{DELAY + 20}",
        ours=mine,
        peers=[by_loop(start, x, target, source.loss, torch.float32)],
        reference=by_loop(start, x, target, source.loss, torch.float64).results or dict,
        bars=[Bar("torch loop", 4.0, 5.0)],
        flops=6.0 * N * (N + source.inputs + source.outputs) * BATCH * (DELAY + 20),
        tolerance=TOLERANCE,
        plan="dense",
    )


def initial(layer: it.nn.ScoRNN, readout: nn.Linear) -> dict[str, Tensor]:
    """The initial values, with the packed skew matrix unpacked into a square."""
    recurrent = list(layer.recurrent_parameters())
    square = torch.zeros(N, N)
    i, j = torch.triu_indices(N, N, 1)
    square[i, j] = recurrent[0].detach()
    names = ("input_weight", "bias", "readout", "offset")
    rest = rest_of(layer, readout, recurrent)
    return {"transition": square} | {k: v.detach().clone() for k, v in zip(names, rest, strict=True)}


def rest_of(layer: nn.Module, readout: nn.Linear, recurrent: list[nn.Parameter]) -> list[nn.Parameter]:
    """V, modReLU's bias, Y, c: a matrix and a vector of the layer, then those of the readout."""
    own = [p for p in layer.parameters() if not any(p is q for q in recurrent)]
    matrix = next(p for p in own if p.dim() == 2)
    vector = next(p for p in own if p.dim() == 1)
    return [matrix, vector, *readout.parameters()]


def by_loop(
    start: dict[str, Tensor], x: Tensor, target: Tensor, loss: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype
) -> Candidate:
    leaves = {k: v.to(dtype, copy=True).requires_grad_() for k, v in start.items()}
    signs = torch.ones(N, dtype=dtype)
    signs[N - N // 2 :] = -1
    own = [leaves[name] for name in ("transition", "input_weight", "bias")]
    inputs = x.to(dtype)
    return step(
        "torch loop, dense W",
        leaves,
        lambda: scornn(*own, inputs, signs),
        target,
        loss,
        {"transition": formulas.packed},
    )


def step(
    name: str,
    leaves: dict[str, Tensor],
    states: Callable[[], Tensor],
    target: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    pick: dict[str, Callable[[Tensor], Tensor]],
) -> Candidate:
    """A candidate whose run changes its own parameters; its results are those of the initial values."""
    rest = [p for k, p in leaves.items() if k != "transition"]
    groups: list[dict[str, Any]] = [{"params": rest}, {"params": [leaves["transition"]], "lr": RECURRENT_RATE}]
    optimizer = torch.optim.RMSprop(groups, lr=RATE, alpha=ALPHA)

    def backward() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        value = loss(nn.functional.linear(states(), leaves["readout"], leaves["offset"]), target)
        value.backward()
        return value

    def run() -> None:
        backward()
        optimizer.step()

    def results() -> Results:
        found = {"value": backward().detach()}
        for key, leaf in leaves.items():
            assert leaf.grad is not None
            found[f"gradient of {key}"] = pick[key](leaf.grad) if key in pick else leaf.grad.clone()
        return found

    return Candidate(name, run, results)
