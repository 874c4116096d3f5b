"""Thin parametrised weights on devices without kernels: counts on the meta device, values and gradients of tensors on
the CPU that are sent this way.
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import isometry.torch as it
from device_calls import counted
from elsewhere import Elsewhere
from isometry.torch.parametrizations import _maps, _thin
from isometry.torch.parametrizations._signs import signs
from orthogonal_weights import EVERY, gap, linear, original
from tolerance import close

#: Calls forward and backward.
MOST = {"householder": (20, 25), "cayley": (30, 30), "matrix_exp": (30, 30)}
SHAPES = pytest.mark.parametrize("shape", [(9, 4), (5, 1), (2, 3, 70, 3)], ids=str)
TYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
BASES = pytest.mark.parametrize("based", [True, False], ids=["base", "no base"])


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def on_meta(shape, name, **keywords):
    layer = torch.nn.Linear(*shape[::-1], bias=False)
    return it.parametrizations.orthogonal(layer, orthogonal_map=name, **keywords).to("meta")


@EVERY
@pytest.mark.parametrize("shape", [(512, 32), (32, 512), (48, 16)], ids=str)
def test_calls(shape, name):
    layer = on_meta(shape, name)
    forward, w = counted(lambda: layer.weight)
    backward, _ = counted(lambda: w.backward(torch.empty_like(w)))
    assert original(layer).grad.shape == w.shape == shape
    assert forward <= MOST[name][0] and backward <= MOST[name][1]


class Observer(TorchDispatchMode):
    """Changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def drawn(shape, dtype, based):
    """X with some of its diagonal near 0, and a base."""
    x = torch.randn(shape, dtype=dtype)
    diagonal = x.diagonal(dim1=-2, dim2=-1)
    diagonal[..., ::2] = 0.1 * diagonal[..., ::2]
    base = _maps.packed(torch.linalg.qr(torch.randn(shape, dtype=dtype))[0]) if based else None
    return x.requires_grad_(), base


def signs_of(name, x):
    return signs(x.detach()) if name == "householder" else None


def of_formula(name, x, base):
    return _maps._weight(name, x, signs_of(name, x), base)


@TYPES
@BASES
@SHAPES
@EVERY
def test_values_and_gradients_are_those_of_the_formula(name, shape, based, dtype):
    x, base = drawn(shape, dtype, based)
    if name == "householder" and dtype.is_complex:
        x = x.real.detach().contiguous().requires_grad_()
        base = _maps.packed(torch.linalg.qr(torch.randn(shape, dtype=x.dtype))[0]) if based else None
    found = _thin.weight(name, None, x, base)
    expected = of_formula(name, x, base)[0]
    close(found.detach(), expected.detach(), 1e-13)
    ct = torch.randn_like(found)
    close(torch.autograd.grad(found, x, ct)[0], torch.autograd.grad(expected, x, ct)[0], 1e-12)
    with torch.no_grad():
        assert torch.equal(_thin.weight(name, None, x, base), found)


@EVERY
@BASES
def test_no_matrices(based, name):
    x = torch.empty(0, 9, 4, device="meta", requires_grad=True)
    w = _maps.weight(name, x, signs_of(name, x), x.detach() if based else None)
    assert torch.autograd.grad(w.sum(), x)[0].shape == w.shape == (0, 9, 4)


@EVERY
def test_second_derivatives(name):
    x, base = drawn((5, 2), torch.float64, True)
    formula = lambda *given: of_formula(name, *given)
    run = lambda x: _thin.weight(name, formula, x, base)
    assert torch.autograd.gradgradcheck(run, x, fast_mode=True)


@EVERY
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_orthogonal_far_from_the_base(dtype, scale, name):
    """At most twice as far from orthonormal as by the formula."""
    x, base = drawn((300, 5), dtype, True)
    x = scale * x.detach()
    found, expected = gap(_thin.weight(name, None, x, base)), gap(of_formula(name, x, base)[0])
    assert found <= 2 * expected + 20 * torch.finfo(dtype).eps


@EVERY
def test_layers_there_take_this_way(name, monkeypatch):
    """Of a device and of the meta device, under a mode that observes operations; not on the CPU, nor a square weight,
    nor inside torch.func."""
    taken, weight = [], _thin.weight
    monkeypatch.setattr(_thin, "weight", lambda *given: taken.append(given[0]) or weight(*given))
    thin, square = linear(9, 4), linear(4, 4)
    for layer in (thin, square):
        it.parametrizations.orthogonal(layer, orthogonal_map=name)
    here = thin.weight.detach().clone()
    assert not taken
    with Observer():
        assert on_meta((9, 4), name).weight.shape == (9, 4)
    assert taken == [name]
    with Elsewhere() as device:
        device.send(thin)
        device.send(square)
        there = thin.weight
        assert taken == 2 * [name]
        there.sum().backward()
        assert square.weight.shape == (4, 4) and taken == 2 * [name]
    close(there.detach(), here, 1e-13)
    assert torch.func.grad(lambda x: on_meta((9, 4), name).parametrizations.weight[0](x).sum())(
        torch.empty(9, 4, device="meta")
    ).shape == (9, 4)
    assert taken == 2 * [name]


def test_complex_reflections_and_trained_bases_take_the_formula(monkeypatch):
    monkeypatch.setattr(_thin, "weight", None)
    x = torch.empty(9, 4, dtype=torch.complex64, device="meta")
    assert _maps.weight("householder", x, x.real[0], x).shape == (9, 4)
    assert _maps.weight("cayley", x, None, x.requires_grad_()).shape == (9, 4)


@EVERY
def test_autocast_and_half_precision(name):
    x, base = drawn((9, 4), torch.float32, True)
    with torch.autocast("cpu", torch.bfloat16):
        w = _thin.weight(name, None, x, base)
        (grad,) = torch.autograd.grad(w.sum(), x)
    assert gap(w) < 2e-6 and grad.dtype is torch.float32
    layer = on_meta((9, 4), name).to(torch.bfloat16)
    layer.weight.sum().backward()
    assert layer.weight.dtype is original(layer).grad.dtype is torch.bfloat16
