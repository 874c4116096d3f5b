"""The Cayley transform in every mode of torch: the kernel's values, exact derivatives, large ||A||."""

import math

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex, real_of
from tolerance import UNITARITY, close, forward, gradient, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)

SIZES = (2, 3, 5, 8)


def in_forward_mode(upper, tangent):
    """W and its tangent."""
    with forward_ad.dual_level():
        w = it.Cayley(forward_ad.make_dual(torch.from_numpy(upper), torch.from_numpy(tangent))).matrix()
        return tuple(t.numpy() for t in forward_ad.unpack_dual(w))


@DTYPE
@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_forward_mode_of_large_norms(dtype, size, seed):
    """The formula is as orthogonal as the kernel, and its tangent is dW = -2 S dA S."""
    for n in SIZES:
        length = n * (n - 1) // 2
        upper, way = (s * ref.normal(seed, length, dtype=dtype).astype(dtype) for s in (real_of(dtype)(size), 1))
        w, tangent = in_forward_mode(upper, way)
        assert w.dtype == tangent.dtype == dtype
        assert ref.orthogonality_error(w) <= UNITARITY
        bound = forward(dtype, n) + forward(np.float64, n, size)
        close(w, iso.Cayley(upper).matrix(), bound)
        s = np.linalg.inv(np.eye(n) + ref.skew(upper))
        expected = -2 * s @ ref.skew(way) @ s
        close(tangent, expected, bound, "tangent", floor=0.0)


@DTYPE
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_forward_mode_lets_through_what_is_not_finite(dtype, value):
    upper = np.ones(3, dtype)
    upper[1] = value
    assert np.isnan(in_forward_mode(upper, np.ones_like(upper))[0]).any()


MODES = {
    "grad": lambda f: torch.func.grad(f),
    "of a batch": lambda f: lambda u: torch.func.vmap(torch.func.grad(f))(torch.stack([u, 2 * u]))[0],
    "forward": lambda f: torch.func.jacfwd(f),
    "differentiable": lambda f: (
        lambda u: torch.autograd.grad(f(v := u.clone().requires_grad_()), v, create_graph=True)[0]
    ),
    "compiled": lambda f: torch.compile(torch.func.grad(f), backend="aot_eager", fullgraph=True),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])
def test_no_solve_serves_a_tensor_on_the_cpu(mode, dtype, seed):
    """Batched solves of LAPACK depend on threads; every mode has the kernel's values."""
    u, c, g = ref.normal(seed, 10, dtype=dtype), ref.normal(seed, 5, 5, dtype=dtype), ref.normal(seed, 5)
    upper, w_bar = torch.from_numpy(u), torch.from_numpy(c)
    if is_complex(dtype):
        f = lambda g: (it.Cayley(upper, diagonal=g).matrix() * w_bar.conj()).real.sum()
        at, expected = torch.from_numpy(g), ref.cayley_vjp(c, u, diagonal=g)["diagonal"]
    else:
        f = lambda u: (it.Cayley(u).matrix() * w_bar).sum()
        at, expected = upper, ref.cayley_vjp(c, u)["upper"]
    with torch.autograd.profiler.profile() as record:
        found = MODES[mode](f)(at)
    close(found.detach().numpy(), expected, gradient(dtype, 5, np.linalg.cond(np.eye(5) + ref.skew(u))))
    assert not [event.key for event in record.key_averages() if "linalg" in event.key]


@DTYPE
@pytest.mark.parametrize("size", [1.0, 1e3, 1e8, 1e12, 1e16, 1e20, 1e30])
def test_any_size(dtype, size, seed):
    """Members of a batch have the values of the kernel, W of forward mode is orthogonal, or an error names upper."""
    for n in SIZES:
        upper = (real_of(dtype)(size) * ref.normal(seed, 3, n * (n - 1) // 2, dtype=dtype)).astype(dtype)
        try:
            w = torch.func.vmap(lambda u: it.Cayley(u).matrix())(torch.from_numpy(upper)).numpy()
            forward_w, _ = in_forward_mode(upper[0], np.ones_like(upper[0]))
        except ValueError as error:
            assert "upper" in str(error) and n % 2 and size > 1e15 and not is_complex(dtype)
        else:
            identical(w, iso.Cayley(upper).matrix())
            assert ref.orthogonality_error(forward_w) <= UNITARITY


@pytest.mark.slow
def test_derivatives_up_to_order_seven():
    """In the plane W[0, 0] = 2 / (1 + u^2) - 1, and 1 / (1 + u^2) = Im 1 / (u - i)."""
    f, u = lambda u: it.Cayley(u.reshape(1)).matrix()[0, 0], torch.tensor(0.7, dtype=torch.float64)
    for order in range(1, 8):
        f = torch.func.jacfwd(f) if order % 2 else torch.func.grad(f)
        expected = 2 * (-1) ** order * math.factorial(order) * ((0.7 - 1j) ** -(order + 1)).imag
        assert float(f(u)) == pytest.approx(expected, rel=1e-12)
    assert torch.func.jacfwd(f)(u).isnan() and torch.func.grad(f)(u).isnan()  # rather than wrong


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=["real", "complex"])
def test_the_operation_of_transforms_keeps_torchs_rules(dtype):
    upper = torch.randn(2, 6, dtype=dtype)
    diagonal = torch.randn(2, 4, dtype=torch.float64) if dtype.is_complex else None
    torch.library.opcheck(torch.ops.isometry.cayley_values, (upper, diagonal))
