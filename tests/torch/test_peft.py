"""The adapters against the package peft: the same outputs and gradients from weights in its layout, and back."""

import pytest
import torch

import isometry.torch as it
from tolerance import close, eps

pytestmark = pytest.mark.extra
FLOATS = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
N, OUT = 24, 10


def of_peft(config, dtype, **keywords):
    """PEFT's adapter of a layer, and a layer of the same weights."""
    import peft

    torch.manual_seed(0)
    linear = torch.nn.Linear(N, OUT, dtype=dtype)
    own = torch.nn.Linear(N, OUT, dtype=dtype)
    own.load_state_dict(linear.state_dict())
    made = getattr(peft, config)(target_modules=["0"], init_weights=False, **keywords)
    return peft.get_peft_model(torch.nn.Sequential(linear), made).base_model.model[0].to(dtype), own


def oft(dtype, **keywords):
    module, own = of_peft("OFTConfig", dtype, r=0, oft_block_size=8, **keywords)
    return module, own, module.oft_R["default"].weight


def hra(dtype, **keywords):
    module, own = of_peft("HRAConfig", dtype, **keywords)
    return module, own, module.hra_u["default"]


def compared(theirs, ours, pairs, dtype, bound=200):
    """Outputs, and gradients of the inputs and of pairs (their parameter, ours in their layout)."""
    x = torch.randn(7, N, dtype=dtype)
    a, b = (x.clone().requires_grad_() for _ in range(2))
    y, own = theirs(a), ours(b)
    tolerance = bound * eps(str(dtype).removeprefix("torch."))
    close(own.detach(), y.detach(), tolerance, "output")
    ct = torch.randn_like(y)
    y.backward(ct)
    own.backward(ct)
    close(b.grad, a.grad, tolerance, "gradient of x")
    for parameter, gradient in pairs:
        close(gradient(), parameter.grad, tolerance, "gradient of the parameter")


@FLOATS
@pytest.mark.parametrize("share", [False, True])
def test_oft_with_the_exact_solver(dtype, share):
    theirs, linear, weight = oft(dtype, use_cayley_neumann=False, block_share=share)
    ours = it.adapters.OFT.from_peft(linear, weight, use_cayley_neumann=False)
    assert ours.block_size == 8 and ours.upper.shape == (3, 28)
    summed = lambda: -ours.upper.grad.sum(0, keepdim=True) if share else -ours.upper.grad
    compared(theirs, ours, [(weight, summed)], dtype)
    back = ours.to_peft(use_cayley_neumann=False)
    assert torch.equal(back, weight.detach().expand(3, 28))
    x = torch.randn(4, N, dtype=dtype)
    before = theirs(x).detach()
    theirs.merge()
    close(theirs(x).detach(), before, 1e-5)
    close(ours.merge().weight.detach(), theirs.base_layer.weight.detach(), 1e-5)


def test_oft_by_the_series_has_the_other_sign():
    """Small blocks, where the series has converged; with the sign of the exact solver they are far off."""
    theirs, linear, weight = oft(torch.float64)
    with torch.no_grad():
        weight.mul_(0.01)
    x = torch.randn(4, N, dtype=torch.float64)
    for exact, error in ((True, 1e-7), (False, None)):
        ours = it.adapters.OFT.from_peft(linear, weight, use_cayley_neumann=exact)
        gap = (ours(x) - theirs(x)).abs().max()
        assert gap < error if error else gap > 1e-3
    assert torch.equal(it.adapters.OFT.from_peft(linear, weight).to_peft(), weight)


def test_oft_with_constrained_blocks():
    """PEFT divides eps by a root in float32."""
    theirs, linear, weight = oft(torch.float64, use_cayley_neumann=False, coft=True, eps=0.3)
    ours = it.adapters.OFT.from_peft(linear, weight.detach().clone(), use_cayley_neumann=False, eps=0.3)
    compared(theirs, ours, [], torch.float64, bound=1e8)
    close(ours.to_peft(use_cayley_neumann=False), weight.detach(), 1e-7, "projected in PEFT's forward")


@FLOATS
@pytest.mark.parametrize("r", [1, 4, 7])
def test_hra(dtype, r):
    theirs, linear, u = hra(dtype, r=r)
    theirs.cast_input_dtype_enabled = True
    ours = it.adapters.HRA.from_peft(linear, u)
    compared(theirs, ours, [(u, lambda: ours.vectors.grad)], dtype)
    assert torch.equal(ours.to_peft(), u)
    close(ours.merge().weight.detach(), theirs.base_layer.weight @ theirs.get_delta_weight("default").detach(), 1e-5)


def test_hra_with_orthonormal_vectors():
    theirs, linear, u = hra(torch.float64, r=4, apply_GS=True)
    compared(theirs, it.adapters.HRA.from_peft(linear, u, apply_GS=True), [], torch.float64)
