"""`nn.OperatorModule`: every operator as part of a model."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import isometry.torch as it
from derivatives import compiled, same
from faces import tensor
from modules import LOADS
from registry.cells.goru import Shear
from tolerance import close


def forms(op):
    """An operator, and what can be made of it."""
    return [op, op.H, op.columns(2), op @ op.H]


def held(module):
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def test_it_is_the_operator(case, seed):
    """Applied, in its matrix and its gradients; every tensor is registered, and none is shared with the operator."""
    given = {name: tensor(a).requires_grad_(name not in case.object.fixed) for name, a in case.draw(seed, 4).items()}
    x = torch.randn(3, 4, dtype=tensor(np.zeros(1, case.dtype)).dtype)
    for op in forms(case.build(it, given, 4)):
        module = it.nn.OperatorModule(op)
        rows = torch.randn(3, op.shape[1], dtype=x.dtype)
        close(module(rows).detach(), op(rows).detach(), 1e-13)
        close(module.matrix().detach(), op.matrix().detach(), 1e-13)
        module(rows).abs().square().cos().sum().backward()
        for parameter in module.parameters():
            assert parameter.grad is not None and not parameter.is_complex()
        with torch.no_grad():
            for t in held(module).values():
                assert not any(t.data_ptr() == own.data_ptr() for own in given.values() if own.numel())


test_it_is_the_operator.select = lambda case: case.dtype in (np.float64, np.complex128)


def test_what_is_trained_is_declared():
    def names(op):
        module = it.nn.OperatorModule(op)
        return sorted(n for n, _ in module.named_parameters()), sorted(n for n, _ in module.named_buffers())

    assert names(it.Cayley.random(4)) == (["upper"], ["signs"])
    assert names(it.Householder.random(4)) == (["vectors"], ["sign"])
    assert names(it.Householder.random(4, dtype=torch.complex64)) == (["phases", "vectors"], [])
    assert names(it.Dense(torch.eye(3)).H @ it.Dense(torch.eye(3))) == (
        ["operators.0.inner.weight", "operators.1.weight"], [])  # fmt: skip
    assert names(it.Kronecker([torch.eye(2), torch.eye(3)])) == (["factors_0", "factors_1"], [])


def test_an_operator_of_ones_own_is_held_as_it_is():
    """Alone and in a product; its module trains what it trains."""
    a = torch.randn(2, requires_grad=True)
    own, x = Shear(a), torch.randn(5, 3)
    module = it.nn.OperatorModule(own)
    assert module.operator() is own and torch.equal(module(x), own(x)) and not list(module.parameters())
    module(x).sum().backward()
    assert a.grad is not None and "Shear" in repr(module)
    product = it.nn.OperatorModule(own @ it.Cayley.random(3))
    close(product(x).detach(), own(product.operators[1](x)).detach(), 1e-6)
    assert [name for name, _ in product.named_parameters()] == ["operators.1.upper"]
    with pytest.raises(TypeError, match=r"operator must be an operator of isometry\.torch, not Tensor"):
        it.nn.OperatorModule(torch.eye(3))


def test_under_autocast():
    """The dtype and the values of the operator, of an input of any precision."""
    op, x = it.Cayley.random(6), torch.randn(3, 6)
    module = it.nn.OperatorModule(op)
    with torch.autocast("cpu", torch.bfloat16):
        for given in (x, x.bfloat16()):
            found = module(given)
            assert found.dtype == op(given.float()).dtype == torch.float32
            close(found.detach(), op(given.float()).detach(), 1e-6)
    assert module(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_it_is_a_module(dtype):
    """Converted, compiled and trained."""
    module = it.nn.OperatorModule(it.Householder.random(6, dtype=dtype) @ it.Cayley.random(6, dtype=dtype))
    x = torch.randn(5, 6, dtype=dtype)
    large = copy.deepcopy(module).double()(x.to(torch.promote_types(dtype, torch.float64)))
    close(large.detach().to(dtype), module(x).detach(), 1e-5)
    same(compiled(module)(x).detach().to(torch.complex128), module(x).detach().to(torch.complex128))
    optimiser = torch.optim.AdamW(module.parameters(), lr=1e-2, weight_decay=0.1)
    loss = lambda: (module(x) - x).abs().square().sum()
    first = loss().item()
    for _ in range(50):
        optimiser.zero_grad(), loss().backward(), optimiser.step()
    w = module.matrix().detach()
    assert loss().item() < first and (w.mH @ w - torch.eye(6)).abs().max() < 1e-5


@pytest.mark.parametrize("way", LOADS)
def test_every_way_to_load(way, case):
    """Into a module of other values; the state of the other one, whatever form the operator has."""
    drawn = lambda seed: {name: tensor(a) for name, a in case.draw(np.random.default_rng(seed), 4).items()}
    one, other = (case.build(it, drawn(seed), 4) for seed in (0, 1))
    for into, source in zip(forms(one), forms(other), strict=True):
        module, source = it.nn.OperatorModule(into), it.nn.OperatorModule(source)
        module.matrix().detach()
        LOADS[way](module, source.state_dict())
        assert torch.equal(module.matrix(), source.matrix())


test_every_way_to_load.select = test_it_is_the_operator.select


def test_vectors_that_decay_to_zero():
    for op in (it.Householder.random(5, 3), it.FourierProduct.random(5)):
        module = it.nn.OperatorModule(op)
        before = module.matrix().detach()
        for factor in (1e-25, 1e-25):
            with torch.no_grad():
                module.vectors.mul_(factor)
            w = module.matrix()
            assert (w.mH @ w - torch.eye(5)).abs().max() < 1e-5
            if factor == 1e-25 and module.vectors.any():
                close(w.detach(), before, 1e-5)
        w.real.sum().backward()
        assert torch.isfinite(module.vectors.grad).all()


def test_half_precision():
    module = it.nn.OperatorModule(it.Cayley.random(6).columns(4)).to(torch.bfloat16)
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    y = module(x)
    assert y.dtype is torch.bfloat16 and torch.equal(y, copy.deepcopy(module).float()(x.float()).to(torch.bfloat16))
    y.float().sum().backward()
    assert module.inner.upper.grad.dtype is torch.bfloat16


def offloaded(module):
    """As accelerate's hooks do it: parameters and buffers have values inside calls of the module that holds them."""
    for m in module.modules():
        forward, owners = m.forward, [(own, dict(own)) for own in (m._parameters, m._buffers) if own]

        def put(device, owners=owners):
            for own, values in owners:
                for name, t in values.items():
                    moved = None if t is None else t.detach().to(device)
                    own[name] = nn.Parameter(moved) if isinstance(t, nn.Parameter) else moved

        def called(*args, forward=forward, put=put):
            put("cpu")
            try:
                return forward(*args)
            finally:
                put("meta")

        m.forward = called
        put("meta")
    return module


def test_values_that_are_there_in_calls_alone(case, seed):
    """Of every operator and what is made of it, and as the transition of a layer; readers of W say what to do."""
    given = {name: tensor(a) for name, a in case.draw(seed, 4).items()}
    for op in forms(case.build(it, given, 4)):
        module, rows = it.nn.OperatorModule(op), torch.randn(3, op.shape[1], dtype=op.dtype)
        want = module(rows).detach()
        assert torch.equal(offloaded(module)(rows).detach(), want)
        with pytest.raises(RuntimeError, match="^matrix needs values.* call the module, or move it"):
            module.matrix()


test_values_that_are_there_in_calls_alone.select = test_it_is_the_operator.select


def test_a_layer_whose_values_are_there_in_calls_alone():
    for make in (
        lambda: it.nn.RNN(3, 4, 2, transition=lambda n: it.Cayley.random(n) @ it.Householder.random(n, 2)),
        lambda: it.nn.ScoRNN(3, 4),
    ):
        layer, x = make(), torch.randn(5, 2, 3)
        want = layer(x)[1].detach()
        offloaded(layer)
        with layer.cached():
            state = None
            for x_t in x:
                state = layer.step(x_t, state)
        close(layer(x)[1].detach(), want, 1e-6)
        close(state.detach(), want, 1e-6)
        with pytest.raises(RuntimeError, match="^recurrent_matrix needs values.* call the module, or move it"):
            layer.recurrent_matrix()


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_vectors_of_another_dtype(dtype):
    """Nothing is rounded to it."""
    with pytest.raises(TypeError, match="^x must be float32, float64"):
        it.nn.OperatorModule(it.Dense(torch.full((2, 2), 0.3)))(torch.ones(1, 2, dtype=dtype))
