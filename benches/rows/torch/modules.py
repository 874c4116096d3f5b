"""Rows of modules: the values, and the gradients of parameters, of modules that are called or trained."""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_map

from harness.row import TOLERANCE, Bar, Candidate, Results, Row
from rows.torch.sides import WIDE, narrow

#: The gradients of a module by name.
Read = Callable[[Any], Results]


def joined(module: nn.Module) -> Results:
    """All of them as one vector."""
    return {"gradient": torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])}


def each(module: nn.Module) -> Results:
    return {f"gradient of {name}": p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


of_input_weight: Read = lambda layer: {"gradient": layer.weight_ih_l0.grad}


def training_step(
    name: str,
    made: Callable[[], tuple[Any, torch.optim.Optimizer]],
    step: Callable[[Any], Tensor],
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
    read: Read = joined,
) -> Candidate:
    """The side of a module and its optimiser: `step` gives a value and leaves the gradients of a step, which the run
    then takes. The results are those before any run.
    """

    def run() -> None:
        module, optimiser = made()
        with context():
            step(module)
            optimiser.step()

    def results() -> Results:
        module, _ = made()
        with context():
            return {"value": step(module).detach(), **read(module)}

    return Candidate(name, run, results)


def row(
    name: str,
    draw: Callable[[], tuple[Any, ...]],
    ours: Callable[..., Any],
    peers: Mapping[str, Callable[..., Any]],
    bars: Sequence[Bar],
    *,
    read: Read | None = of_input_weight,
    unchecked: Sequence[str] = (),
    tolerance: tuple[float, float] = TOLERANCE,
) -> Row:
    """The row of calls: `draw` gives the module of our side, that of the peers, and the other arguments of all calls.

    Modules are differentiated from a random gradient of the value, unless nothing is to `read`. The reference is the
    first peer with its module in double precision.
    """
    drawn = cache(lambda: (torch.manual_seed(0), draw())[1])  # on first use: a skipped row costs nothing

    def called(call: Callable[..., Any], module: Any, given: tuple[Any, ...]) -> Tensor:
        if read is None:
            with torch.no_grad():
                return dense(call(module, *given))
        module.zero_grad()
        value = dense(call(module, *given))
        value.backward(cotangent(value.shape, value.dtype))
        return value.detach()

    def results(call: Callable[..., Any], module: Any, given: tuple[Any, ...]) -> Results:
        return {"value": called(call, module, given)} | (read(module) if read else {})

    def side(label: str, call: Callable[..., Any], which: int) -> Candidate:
        def given() -> tuple[Any, ...]:
            return drawn()[which], drawn()[2:]

        around = getattr(call, "around", nullcontext)
        run = lambda: called(call, *given())
        vars(run).update(around=around)

        def checked() -> Results:
            with around():
                return results(call, *given())

        return Candidate(label, run, None if label in unchecked else checked)

    def reference() -> Results:
        _, module, *given = drawn()
        double = tree_map(lambda t: t.to(WIDE.get(t.data.dtype, t.data.dtype)), tuple(given))
        return results(next(iter(peers.values())), copy.deepcopy(module).double(), double)

    sides = [side(label, call, 1) for label, call in peers.items()]
    return Row(name, side("isometry", ours, 0), sides, reference, bars, tolerance=tolerance)


@cache
def cotangent(shape: torch.Size, dtype: torch.dtype) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=narrow(dtype)).to(dtype)


def dense(value: Any) -> Tensor:
    """The steps of packed sequences, or the parts of a state, as one tensor."""
    if isinstance(value, PackedSequence):
        return value.data
    return torch.cat(value) if isinstance(value, tuple) else value
