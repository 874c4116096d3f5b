"""linalg of torch beside torch's own functions, and what the laws of functions do not say."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jvp
from torch.library import opcheck

import isometry.torch as it
from derivatives import TRANSFORMS, draw, every_member, every_order, leaves, same, transform_agrees
from isometry.torch.formulas import linalg as formulas

linalg = it.linalg
FIELDS = pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])


def problem(rng, name, dtype=np.float64, m=4, k=3):
    """A function of tensors with one result, and a point."""
    a, tau = 0.5 * draw(rng, m, k, dtype=dtype), draw(rng, k, dtype=dtype)
    if name == "product":
        return linalg.householder_product, [a, tau]
    return linalg.ormqr, [a, tau, draw(rng, m, 2, dtype=dtype)]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])
def test_the_cayley_transform_of_skew_matrices(dtype, seed):
    """The skew part of any matrix, whose derivatives are those of differences."""
    f, at = lambda g: linalg.cayley(g - g.mH), [0.5 * draw(seed, 3, 3, dtype=dtype)]
    every_order(f, at)
    every_member(f, at)
    for transform in TRANSFORMS:
        transform_agrees(transform, f, at, 0)


def test_operators_of_graphs(seed):
    """Both are what torch asks of an operator."""
    (f, at), x = problem(seed, "product"), draw(seed, 5, 3)
    del f
    forward, backward, no = (
        torch.ops.isometry.linalg.default,
        torch.ops.isometry.linalg_backward.default,
        torch.tensor(False),
    )
    opcheck(forward, ("product", [], at, None, True))
    opcheck(forward, ("apply", [True, False], [*at, draw(seed, 4, 2)], None, True))
    opcheck(forward, ("geqrf", [], [x], None, True))
    opcheck(backward, ("product", [], at, [no], [at[0]], [True, False]))
    factors = torch.geqrf(x)
    opcheck(backward, ("geqrf", [], [x], [*factors, no], [*factors], [True]))


@pytest.mark.parametrize("name", ["product", "ormqr"])
def test_nested_forward_mode(name, seed):
    """Forward over forward is reverse over reverse (torch's own householder_product is wrong here)."""
    f, at = problem(seed, name)
    way = torch.ones_like(at[0])
    loss = lambda a: (f(a, *at[1:]) ** 3).sum()
    once = lambda a: jvp(loss, (a,), (way,))[1]
    expected = grad(lambda a: (grad(loss)(a) * way).sum())(at[0])
    same(jvp(once, (at[0],), (way,))[1], (expected * way).sum())


@FIELDS
@pytest.mark.parametrize("times", [0.0, 1.0, 1 + 1e-6, 2.0])
def test_gradients_where_a_factor_has_no_inverse(times, dtype, seed):
    """tau ||v||^2 = 0, 1, 1 + 1e-6 and 2: those of the differences, of the gradient too."""
    a = 0.5 * draw(seed, 5, 3, dtype=dtype)
    tau = (times / (1 + a.tril(-1).abs().square().sum(-2))).to(a.dtype)
    x = draw(seed, 5, 2, dtype=dtype)
    for f, at in ((linalg.householder_product, [a, tau]), (linalg.ormqr, [a, tau, x])):
        assert gradcheck(f, leaves(at), fast_mode=True)
        assert gradgradcheck(f, leaves(at), fast_mode=True)


@FIELDS
def test_the_formula_of_geqrf_where_a_column_is_its_own_factor(dtype, seed):
    """Zero columns and ones that are zero below the diagonal: the kernel's values and gradients, finite."""
    x = draw(seed, 5, 4, dtype=dtype)
    x[:, 1] = 0
    x[1:, 0] = 0
    x[0, 0] = 1.5
    cts = [draw(seed, 5, 4, dtype=dtype), draw(seed, 4, dtype=dtype)]
    leaf, other = leaves([x, x])
    found, expected = linalg.geqrf(leaf), formulas.geqrf(other)
    same(found, expected)
    grads = [torch.autograd.grad(out, t, cts)[0] for out, t in ((found, leaf), (expected, other))]
    assert all(g.isfinite().all() for g in grads)
    same(*grads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_the_formula_of_geqrf_of_denormal_and_largest_numbers(dtype):
    """Inverses of the first overflow, and absolute values of complex ones of the second: Q R is the matrix."""
    limits = np.finfo(dtype)
    a = torch.from_numpy(np.array([[1, -1, 2], [1, 1, 0], [-1, 1, 1], [0, 1, -1]], dtype))
    a = a * (1 + 1j) if a.is_complex() else a
    for scale, tolerance in ((64 * limits.smallest_subnormal, 0.1), (limits.tiny / 4, 1e-5), (limits.max / 8, 1e-5)):
        r, tau = (t.to(torch.complex128 if t.is_complex() else torch.float64) for t in formulas.geqrf(a * float(scale)))
        down = float(scale) ** -0.5
        product = torch.linalg.householder_product(r, tau) @ (r[:3] * down * down).triu()
        assert (product - a).abs().max() < tolerance


def test_only_wanted_gradients_are_returned(seed):
    _, (a, tau, x) = problem(seed, "ormqr")
    whole = torch.autograd.grad(linalg.ormqr(*(own := leaves([a, tau, x]))).sum(), own)
    for i in range(3):
        given = [t.clone().requires_grad_(i == j) for j, t in enumerate((a, tau, x))]
        (found,) = torch.autograd.grad(linalg.ormqr(*given).sum(), given[i])
        same(found, whole[i])


def test_autocast_and_half_precision(seed):
    _, (a, tau) = problem(seed, "product")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linalg.householder_product(a.bfloat16(), tau.bfloat16()).dtype == torch.float32
    with pytest.raises(TypeError, match="bfloat16"):
        linalg.householder_product(a.bfloat16(), tau.bfloat16())
    with pytest.raises(TypeError, match="Tensor"):
        linalg.geqrf(np.zeros((3, 2)))


@FIELDS
def test_a_wide_factorisation(dtype, seed):
    """Of n > m columns ormqr uses the first m, as torch's; the gradient of the others is zero."""
    x, other = draw(seed, 3, 2, 5, dtype=dtype), draw(seed, 3, 2, 4, dtype=dtype)
    found = linalg.geqrf(x)
    same(linalg.ormqr(found.a, found.tau, other), torch.ormqr(*torch.geqrf(x), other))
    own, theirs = leaves(found), leaves([found.a[..., :2], found.tau])
    ct = draw(seed, *other.shape, dtype=dtype)
    for a, b in zip(
        torch.autograd.grad(linalg.ormqr(*own, other), own, ct),
        torch.autograd.grad(linalg.ormqr(*theirs, other), theirs, ct),
        strict=True,
    ):
        same(a[..., : b.shape[-1]], b)
        assert not a[..., b.shape[-1] :].any()


def test_torchs_names_and_out(seed):
    """Tensors of the caller of any layout keep it, and get the values in a dtype that holds them."""
    x, other = draw(seed, 3, 5, 2), draw(seed, 3, 5, 4)
    a, tau = linalg.geqrf(input=x)
    for call, expected in (
        (lambda out: linalg.geqrf(x, out=out), (a, tau)),
        (lambda out: (linalg.householder_product(A=a, tau=tau, out=out[0]),), (linalg.householder_product(a, tau),)),
        (lambda out: (linalg.ormqr(input=a, tau=tau, other=other, out=out[0]),), (linalg.ormqr(a, tau, other),)),
    ):
        for make in (
            torch.empty_like,
            lambda t: t.new_empty(0),
            lambda t: t.new_empty(*t.shape, 2)[..., 0],
            lambda t: t.new_empty(t.shape[::-1]).permute(*range(t.dim())[::-1]),
            lambda t: t.new_empty(t.shape, dtype=torch.complex128),
        ):
            out = tuple(map(make, expected))
            layouts = [t.numel() and (t.stride(), t.data_ptr()) for t in out]
            for t, own, result, layout in zip(expected, out, call(out), layouts, strict=True):
                assert result is own and torch.equal(t, own.real) and layout in (0, (own.stride(), own.data_ptr()))
        with pytest.raises(ValueError, match="^out must have shape"):
            call(tuple(t.new_empty(7, *t.shape) for t in expected))
        with pytest.raises(TypeError, match="^out must be of a dtype that holds float64, not int64$"):
            call(tuple(t.new_empty(0, dtype=torch.int64) for t in expected))
    with pytest.raises(RuntimeError, match="^out must be on the device cpu, not meta$"):
        linalg.geqrf(x, out=(a.to("meta"), tau))
    with pytest.raises(RuntimeError, match="out must be None where a gradient is recorded"):
        linalg.geqrf(x.clone().requires_grad_(), out=(a, tau))
    with pytest.raises(TypeError, match="out must be a tuple of 2 tensors"):
        linalg.geqrf(x, out=a)


def test_results_without_elements(seed):
    """The strides that torch gives a new tensor of that shape, and gradients; also of a batch of none inside vmap."""
    for shape in [(0, 0), (5, 0), (0, 5, 3), (2, 5, 0)]:
        x = draw(seed, *shape).requires_grad_()
        a, tau = linalg.geqrf(x)
        for t in (a, tau, linalg.householder_product(a, tau), linalg.ormqr(a, tau, a.new_empty(*a.shape[:-1], 2))):
            assert t.stride() == torch.empty(t.shape).stride(), t.shape
            assert torch.autograd.grad(t.sum(), x, retain_graph=True, materialize_grads=True)[0].shape == x.shape
    x = draw(seed, 2, 0, 5, 3)
    found = torch.func.vmap(linalg.geqrf)(x)
    assert found[0].shape == x.shape and found[1].shape == (2, 0, 3)
    pull = torch.func.grad(lambda x: linalg.geqrf(x)[0].sum())
    assert torch.func.vmap(pull)(x).shape == x.shape
