"""On a device without kernels a cell has the states and gradients of its kernels, and sends no value to the host."""

import numpy as np
import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

import reference as ref
from elsewhere import Elsewhere
from faces import array
from isometry.torch._dispatch.mode import TRACED
from isometry.torch.on_device.activation import READABLE
from isometry.torch.on_device.loop import CELLS
from isometry.torch.sequences import _sequence
from laws.cells.test_time import padded
from registry.cells import each_cell, each_plain_cell
from support.cells import ElsewhereCell, TorchCell
from tolerance import close, sequence, sequence_gradient

pytestmark = pytest.mark.cpu
ENDS = [7, 4, 1, 0]
OPTIONS = {
    "plain": {},
    "lengths": {"lengths": ENDS},
    "reverse with lengths": {"lengths": ENDS, "reverse": True},
    "the last state": {"lengths": ENDS, "output": "last"},
    "the last state in reverse": {"lengths": ENDS, "output": "last", "reverse": True},
    "marks": {"starts": np.arange(28).reshape(7, 4) % 5 == 0},
}


def kernels(subject, rng, activation="tanh", single=False, **options):
    """The states and gradients of the kernels."""
    case, given = subject.case, {**options, **subject.case.options(activation)}
    arrays = case.draw(rng, 6, 7, 4, activation=activation, single=single, marked="starts" in options)
    expected = TorchCell(case).states(arrays, **given)
    ct = ref.normal(rng, *expected.shape, dtype=case.dtype(single))
    bars = TorchCell(case).vjp(arrays, ct, **given)
    with Elsewhere() as device:
        found, grads = subject.states(arrays, **given), subject.vjp(arrays, ct, **given)
        assert not device.fetched
    loss, size = case.kind.loss, float(np.linalg.norm(ct))
    close(found, expected, loss * sequence(found.dtype, 6, 7), "states")
    for name, g in bars.items():
        close(grads[name], g, loss * sequence_gradient(found.dtype, 6, 7), f"gradient of {name}", size)


@pytest.mark.parametrize("option", OPTIONS)
@each_plain_cell
def test_a_device_has_the_values_of_the_kernels(cell, option, seed):
    for single in (False, True):
        kernels(ElsewhereCell(cell), seed, single=single, **OPTIONS[option])


@each_cell
def test_activations_of_a_device(cell, seed):
    for name in cell.activations():
        kernels(ElsewhereCell(cell), seed, name, lengths=ENDS)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@each_plain_cell
def test_padding_reaches_nothing_on_a_device(cell, reverse, seed):
    with Elsewhere():
        padded(ElsewhereCell(cell), seed, [5, 7, 3, 7], reverse)


@each_cell
def test_second_derivatives_on_a_device(cell, seed):
    f, at = TorchCell(cell).function(cell.draw(seed), lengths=[3, 2], **cell.options())

    def second(send):
        own = [send(t.clone()).requires_grad_() for t in at]
        first = torch.autograd.grad(f(*own).abs().square().sum(), own, create_graph=True)
        return torch.autograd.grad(sum(g.abs().square().sum() for g in first), own)

    expected = second(lambda t: t)
    with Elsewhere() as device:
        found = second(device.send)
    for a, b in zip(found, expected, strict=True):
        close(ElsewhereCell(cell).home(a), b, 25 * cell.kind.loss * sequence_gradient(np.float64, 4, 3))


@each_plain_cell
@pytest.mark.slow
def test_a_graph_of_a_device(cell, seed, monkeypatch):
    """The loop over time is one operation of a compiled graph, for any number of steps."""
    for option, steps in (("reverse with lengths", 7), ("the last state", 9)):
        options = {**OPTIONS[option], **cell.options()}
        arrays = cell.draw(seed, 6, steps, 4)
        f, at = TorchCell(cell).function(arrays, **options)
        at = [t.requires_grad_() for t in at]
        expected = f(*at)
        ct = torch.from_numpy(ref.normal(seed, *expected.shape, dtype=cell.dtype(False)))
        bars, graphs = torch.autograd.grad(expected, at, ct), []
        with monkeypatch.context() as there:
            there.setattr(_sequence, "mode", lambda *_: TRACED)
            torch._dynamo.reset()
            keep = lambda graph, _, graphs=graphs: graphs.append(graph) or make_boxed_func(graph)
            found = torch.compile(f, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep), fullgraph=True)(*at)
            grads = torch.autograd.grad(found, at, ct)
        calls = [str(node.target) for graph in graphs for node in graph.graph.nodes]
        served = not cell.memory and cell.options().get("activation", "tanh") in READABLE
        served = served and cell.cell.stem in CELLS  # of others each step is recorded
        assert calls.count("isometry.steps.default") == calls.count("isometry.steps_backward.default") == served
        for a, b in zip((found, *grads), (expected, *bars), strict=True):
            close(array(a), array(b), cell.kind.loss * sequence_gradient(np.float64, 6, steps), option)
