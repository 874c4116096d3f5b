"""Memory of a scoRNN over T steps in units of T B n values: what is held between forward and backward, and the peak.

Only the states are kept, and backward needs workspace of constant size: both figures are 1. The cotangent of the
states, created by the loss, is allocated before the measurement. Each length runs in its own process; a figure is the
difference between two lengths, which cancels all constants. The peak is the kernel's VmHWM: ru_maxrss of a child
starts at its parent's, whose earlier rows may have used more.

The rows of checkpoints are the peak of a whole step, forward and backward of the last state, in percent of the call
that keeps all states. Inputs, parameters and their gradients do not count.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import torch

import isometry.torch as it
from harness.child import run
from harness.figure import Figure
from harness.timing import growth, memory
from rows.torch.recurrences import scornn

N, BATCH = 190, 20
LENGTHS = (3000, 9000)
BOUND = 1.1
#: checkpoint, activation, and the largest share of the memory, in percent
LEAN = (("sqrt", "oplu", 5.0), ("reversible", "oplu", 1.0), ("reversible", "identity", 1.0))
LEAN_N, LEAN_BATCH, LEAN_STEPS = 128, 16, 10_000


def rows(alone: bool = False) -> Iterator[Figure]:
    short, long = LENGTHS
    sides = ("isometry",) if alone else ("isometry", "torch")
    found = {side: (measured(side, short), measured(side, long)) for side in sides}
    size = (long - short) * BATCH * N * 4
    for kind, text in (("held", "between forward and backward"), ("peak", "peak of forward and backward")):
        slopes = {side: slope(pair[0][kind], pair[1][kind], size) for side, pair in found.items()}
        theirs = slopes.get("torch")
        yield Figure(
            name=f"memory of a scoRNN layer, {text}",
            value=slopes["isometry"],
            unit="T B n values" + ("" if theirs is None else f" (torch loop: {theirs:.1f})"),
            bound=BOUND,
            facts={
                **{f"slope {side}": value for side, value in slopes.items()},
                **{f"bytes {side}": pair[0][kind] for side, pair in found.items()},
                "short": short,
                "long": long,
            },
        )

    yield from lean_rows()


def lean_rows() -> Iterator[Figure]:
    for checkpoint, activation, bound in LEAN:
        whole, lean = (measured(f"checkpoint {mode} {activation}", LEAN_STEPS) for mode in ("none", checkpoint))
        known = whole["peak"] is not None and lean["peak"] is not None
        yield Figure(
            name=f"memory with checkpoint {checkpoint}, {activation}, peak of forward and backward",
            value=100 * lean["peak"] / whole["peak"] if known else None,  # type: ignore[operator]
            unit="% of that without",
            bound=bound,
            facts={"bytes without": whole["peak"], "bytes with": lean["peak"]},
        )


def slope(short: int | None, long: int | None, size: int) -> float | None:
    """Growth in units of size; None if the system does not report it: the states alone make it positive."""
    if short is None or long is None or long <= short:
        return None
    return (long - short) / size


def measured(side: str, steps: int) -> dict[str, int | None]:
    """Bytes held after the forward and at the peak, from a separate process."""
    return json.loads(run("rows.memory", side, str(steps), check=True, capture_output=True, text=True).stdout)


def lean_child(checkpoint: str, activation: str, steps: int) -> dict[str, int | None]:
    """The last state of a long sequence and its gradients."""
    upper = (0.1 * torch.randn(LEAN_N * (LEAN_N - 1) // 2)).requires_grad_()
    input_weight = (0.1 * torch.randn(LEAN_N, 1)).requires_grad_()
    given: dict[str, Any] = {"activation": activation, "checkpoint": checkpoint, "output": "last"}

    def step(x: torch.Tensor) -> None:
        it.recurrence(it.Cayley(upper), x, input_weight, **given).sum().backward()

    x = torch.randn(steps, LEAN_BATCH, 1)
    step(x[:1000]), step(x[:1000])  # what the process allocates once
    start = memory("VmRSS")
    step(x)
    return {"held": None, "peak": growth("VmHWM", start)}


def child(side: str, steps: int) -> dict[str, int | None]:
    if side.startswith("checkpoint"):
        return lean_child(*side.split()[1:], steps)
    layer = it.nn.ScoRNN(1, N, nonlinearity="modrelu")
    x, cotangent = torch.randn(steps, BATCH, 1), torch.ones(steps, BATCH, N)
    layer(x[:64])[0].sum().backward()  # pools, libraries and workspaces are created before the measurement
    start = memory("VmRSS")
    if side == "isometry":
        states = layer(x)[0]
    else:
        square, bias = (torch.randn(N, N) * 0.05).requires_grad_(), torch.zeros(N, requires_grad=True)
        states = scornn(square, torch.randn(N, 1, requires_grad=True), bias, x, torch.ones(N))
    held = growth("VmRSS", start)
    states.backward(cotangent)
    return {"held": held, "peak": growth("VmHWM", start)}


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
