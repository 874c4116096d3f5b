"""Square parametrised weights on devices without kernels: the exponential of torch, counted on the meta device; values
and gradients of tensors on the CPU that are sent this way, against the formula in double precision.
"""

import pytest
import torch

import isometry.torch as it
from device_calls import counted
from elsewhere import Elsewhere
from isometry.torch.parametrizations import _maps, _square
from orthogonal_weights import gap, linear, original
from tolerance import close

TYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
BASES = pytest.mark.parametrize("based", [True, False], ids=["base", "no base"])
FORMULA = lambda x, base: _maps._weight("matrix_exp", x, None, base)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def drawn(shape, dtype, based):
    base = torch.linalg.qr(torch.randn(shape, dtype=dtype))[0] if based else None
    return torch.randn(shape, dtype=dtype), base


def both(run, x, base, ct):
    """W and the gradient of X."""
    x = x.clone().requires_grad_()
    w = run(x, base)
    return w.detach(), torch.autograd.grad(w, x, ct)[0]


def on_meta(name, dtype=torch.float32, **keywords):
    layer = torch.nn.Linear(8, 8, bias=False, dtype=dtype)
    return it.parametrizations.orthogonal(layer, orthogonal_map=name, **keywords).to("meta")


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("trivialised", [True, False])
def test_calls(dtype, trivialised):
    layer = on_meta("matrix_exp", dtype, use_trivialization=trivialised)
    forward, w = counted(lambda: layer.weight)
    backward, _ = counted(lambda: w.backward(torch.empty_like(w)))
    assert original(layer).grad.shape == w.shape == (8, 8)
    assert forward <= 10 and backward <= 60


@TYPES
@BASES
@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (2, 3, 5, 5), (0, 4, 4)], ids=str)
def test_values_and_gradients_are_those_of_the_formula(shape, based, dtype):
    x, base = drawn(shape, dtype, based)
    ct = torch.randn(shape, dtype=dtype)
    run = lambda x, base: _square.weight(FORMULA, x, base)
    found, expected = both(run, x, base, ct), both(lambda *given: FORMULA(*given)[0], x, base, ct)
    for a, b in zip(found, expected, strict=True):
        close(a, b, 1e-13)
    assert torch.equal(run(x, base), found[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("norm", [0.1, 3.0, 30.0, 100.0])
@pytest.mark.parametrize("large", [1.0, 1e6, 1e-30])
def test_as_accurate_as_the_formula(dtype, norm, large):
    """For norms of A up to 100, of any cotangent; beside double precision, or by eigenvectors in it."""
    n = 40
    x, base = drawn((n, n), dtype, True)
    lower = x.tril()
    x = x * (norm / torch.linalg.matrix_norm(lower - lower.mH, 2))
    ct = large * torch.randn(n, n, dtype=dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    found = both(lambda x, base: _square.weight(FORMULA, x, base), x, base, ct)
    formula = both(lambda *given: FORMULA(*given)[0], x, base, ct)
    if dtype is torch.float64:
        s, v = torch.linalg.eigh(1j * (lower - lower.mH) * (x[1, 0] / lower[1, 0]))
        turned = base.mH.to(torch.complex128) @ ct.to(torch.complex128)
        apart = (s.unsqueeze(-1) - s) / 2
        phi = torch.exp(0.5j * (s.unsqueeze(-1) + s)) * torch.sinc(apart / torch.pi)
        bar = v @ (phi * (v.mH @ turned @ v)) @ v.mH
        exact = (base @ (v @ (torch.exp(-1j * s).unsqueeze(-1) * v.mH)).real, (bar - bar.mH).real.tril())
    else:
        exact = both(lambda *given: FORMULA(*given)[0], x.to(wide), base.to(wide), ct.to(wide))
    eps = torch.finfo(dtype).eps
    for a, b, c in zip(found, formula, exact, strict=True):
        error, allowed = ((t - c).abs().max() / c.abs().max() for t in (a, b))
        assert error <= 2 * allowed + 30 * eps
    assert gap(found[0]) <= 2 * gap(formula[0]) + 10 * eps


def test_second_derivatives():
    x, base = drawn((4, 4), torch.float64, True)
    run = lambda x: _square.weight(FORMULA, x, base)
    assert torch.autograd.gradgradcheck(run, x.requires_grad_(), fast_mode=True)


def test_layers_there_take_this_way(monkeypatch):
    """Not on the CPU, nor other maps, nor a trained base, nor on a device whose torch has no exponential."""
    taken, weight = [], _square.weight
    monkeypatch.setattr(_square, "weight", lambda *given: taken.append(1) or weight(*given))
    layer = linear(4, 4)
    it.parametrizations.orthogonal(layer)
    here = layer.weight.detach().clone()
    for name in ("cayley", "householder"):
        assert on_meta(name).weight.shape == (8, 8)
    x = torch.empty(4, 4, device="meta")
    _maps.weight("matrix_exp", x, None, x.clone().requires_grad_())
    assert not taken
    with Elsewhere() as device:
        device.send(layer)
        there = layer.weight
        there.sum().backward()
    assert taken == [1]
    close(there.detach(), here, 1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_rounded_at_the_end(dtype):
    layer = on_meta("matrix_exp").to(dtype)
    assert layer.weight.dtype is dtype
