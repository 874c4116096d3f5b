"""Parameters and buffers are contiguous, however they came: so what flattens, stores and exchanges them works."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import isometry.torch as it
from layers import KINDS, B, D, T, build, draw
from orthogonal_weights import EVERY, MAPS, Holder


def transposed(t):
    """The same numbers with other strides, if there is more than one way; a tensor is of the same class."""
    data = t.detach()
    data = torch.stack((data, data), -1)[..., 0] if data.dim() < 2 else data.mT.contiguous().mT
    return torch.nn.Parameter(data) if isinstance(t, torch.nn.Parameter) else data


def tensors(module):
    return [*module.named_parameters(), *module.named_buffers()]


def contiguous(module):
    """All of them, and what needs it works."""
    wrong = [(name, t.shape, t.stride()) for name, t in tensors(module) if not t.is_contiguous()]
    assert not wrong
    parameters = list(module.parameters())
    vector_to_parameters(parameters_to_vector(parameters).clone(), parameters)
    return module


def every_way(module):
    """Then loaded, also by assignment, and in other formats of memory: the values stay, and the state is as it was."""
    contiguous(module)
    before = {name: t.detach().clone() for name, t in tensors(module)}
    state = {name: transposed(t) for name, t in module.state_dict().items()}
    strides = {name: t.stride() for name, t in state.items()}
    for keywords in ({}, {"assign": True}):
        module.load_state_dict(state, **keywords)
        contiguous(module)
    if all(t.dim() < 5 for _, t in tensors(module)):  # torch has this format of four axes
        module.to(memory_format=torch.channels_last)
    contiguous(copy.deepcopy(module))
    assert {name: t.stride() for name, t in state.items()} == strides
    for name, t in tensors(module):
        assert torch.equal(t.detach(), before[name]), name


def weighted(name, shape, dtype, trivialization, arranged):
    module = Holder(arranged(torch.randn(shape, dtype=dtype)))
    return it.parametrizations.orthogonal(module, "weight", name, use_trivialization=trivialization)


@EVERY
@pytest.mark.parametrize("trivialization", [True, False], ids=["trivialized", "plain"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16], ids=str)
def test_weights(dtype, trivialization, name):
    for shape in ((1, 1), (6, 6), (9, 4), (4, 9), (2, 3, 4), (2, 3, 4, 3), (2, 3, 3, 3), (1, 5)):
        for arranged in (transposed, lambda w: w, lambda w: torch.stack((w, w), -1)[..., 0]):
            module = weighted(name, shape, dtype, trivialization, arranged)
            every_way(module)
            if trivialization or name == "householder":
                module.weight = arranged(torch.randn(shape, dtype=dtype))
                every_way(module)


def test_operators(case):
    """The module of every operator, from arguments and parameters in any layout, of stacks too."""
    rng, n = np.random.default_rng(0), case.size(4)
    for batch in ((), (2, 3)):
        drawn = {k: torch.from_numpy(np.array(a)) for k, a in case.draw(rng, n, batch).items()}
        for kept in (False, True):
            arguments = {
                k: torch.nn.Parameter(transposed(t)) if kept and t.is_floating_point() else transposed(t)
                for k, t in drawn.items()
            }
            operator = case.build(it, arguments, n)
            module = it.nn.OperatorModule(operator)
            before = operator.matrix().detach()
            if kept and case.dtype is np.float64:
                assert any(p is q for p in module.parameters() for q in arguments.values())
            every_way(module)
            assert torch.equal(module.matrix().detach(), before)


test_operators.select = lambda case: case.dtype in (np.float64, np.complex128)


@pytest.mark.parametrize("name", KINDS)
def test_layers(name):
    """Their results too, with the steps first, as those of torch."""
    every_way(build(name, 2, bidirectional=True, trainable_h0=True))
    assert all(t.is_contiguous() for t in build(name, 2)(draw(T, B, D)))  # one direction: nothing is concatenated


def test_adapters():
    """Also from the arrays of other packages."""
    linear = lambda: torch.nn.Linear(8, 3)
    u = torch.randn(8, 4)
    skew = torch.randn(2, 6)
    for adapter in (
        it.adapters.HRA(linear(), 4),
        it.adapters.OFT(linear(), 4),
        *(it.adapters.HRA.from_peft(linear(), a, apply_GS=gs) for a in (u, transposed(u)) for gs in (False, True)),
        *(it.adapters.OFT.from_peft(linear(), a) for a in (skew, transposed(skew))),
    ):
        contiguous(adapter)
        own = {name: t for name, t in adapter.state_dict().items() if not name.startswith("linear")}
        for keywords in ({}, {"assign": True}):
            adapter.load_state_dict({name: transposed(t) for name, t in own.items()}, strict=False, **keywords)
            contiguous(adapter)
        assert contiguous(adapter.merge()).weight.shape == (3, 8)


@pytest.mark.parametrize("name", MAPS)
def test_lbfgs(name):
    """It flattens parameters and gradients."""
    module = weighted(name, (6, 6), torch.float64, False, transposed)
    target = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64))[0]
    optimiser, losses = torch.optim.LBFGS(module.parameters(), lr=0.1), []

    def closure():
        optimiser.zero_grad()
        losses.append((module.weight - target).square().sum())
        losses[-1].backward()
        return losses[-1]

    optimiser.step(closure)
    assert losses[-1] < losses[0]
