"""The exponential of skew matrices: identities, large norms, both kernels."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex, real_of
from tolerance import TIGHT, UNITARITY, close, eps, forward, gradient, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
#: One matrix per lane, and single ones; n = 1 has no triangle.
SHAPES = [((40,), 1), ((40,), 2), ((33,), 7), ((17,), 32), ((), 1), ((), 5), ((3,), 33), ((), 70)]


def drawn(rng, n, dtype, batch=(), scale=1.0):
    """Arguments with ||A|| of about the scale."""
    size = scale / np.sqrt(n)
    upper = (size * ref.normal(rng, *batch, n * (n - 1) // 2, dtype=dtype)).astype(dtype)
    if not is_complex(dtype):
        return {"upper": upper}
    return {"upper": upper, "diagonal": (size * rng.standard_normal((*batch, n))).astype(real_of(dtype))}


@DTYPE
@pytest.mark.parametrize("norm", [1e2, 1e4, 1e8, 1e30])
@pytest.mark.parametrize(("batch", "n"), [((40,), 1), ((40,), 2), ((20,), 9), ((), 3), ((2,), 50), ((), 190)])
def test_any_norm_gives_an_orthogonal_matrix(batch, n, norm, dtype, seed):
    w = iso.Exponential(**drawn(seed, n, dtype, batch, norm)).matrix()
    assert np.max(iso.orthogonality_error(w)) < UNITARITY


@DTYPE
@pytest.mark.parametrize("norm", [1.0, 1e2, 1e4, 1e8, 1e30])
@pytest.mark.parametrize("n", [1, 2, 9, 50])
def test_the_formula_gives_an_orthogonal_matrix(n, norm, dtype, seed):
    """What transforms of torch.func and other devices compute: the kernel's W up to its condition."""
    arguments = drawn(seed, n, dtype, (3,), norm)
    w = torch.func.vmap(lambda own: it.Exponential(**own).matrix())(
        {k: torch.from_numpy(a) for k, a in arguments.items()}
    )
    assert it.orthogonality_error(w).max() < UNITARITY
    if norm * eps(real_of(dtype)) < 1e-3:
        close(w.numpy(), iso.Exponential(**arguments).matrix(), forward(dtype, n, 1 + norm))


@DTYPE
@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
@pytest.mark.parametrize(("batch", "n"), SHAPES)
def test_a_norm_beyond_the_largest_number(batch, n, share, dtype, seed):
    """The sum of a row of A overflows where no entry does: in both kernels, and in the formula."""
    size = share * float(np.finfo(dtype).max)
    arguments = {k: np.sign(a.real).astype(a.dtype) * size for k, a in drawn(seed, n, dtype, batch).items()}
    assert np.max(iso.orthogonality_error(iso.Exponential(**arguments).matrix())) < UNITARITY
    leaves = {k: torch.from_numpy(a)[None] for k, a in arguments.items()}
    w = torch.func.vmap(lambda own: it.Exponential(**own).matrix())(leaves)
    assert it.orthogonality_error(w).max() < UNITARITY


def derivatives(f, u):
    """Of a number by reverse and forward mode, of a batch, as a graph, and compiled."""
    v = u.clone().requires_grad_()
    yield torch.func.grad(f)(u)
    yield torch.func.jacfwd(f)(u)
    yield torch.func.vmap(torch.func.grad(f))(torch.stack([u, u / 2]))[0]
    yield torch.autograd.grad(f(v), v, create_graph=True)[0].detach()
    yield torch.compile(torch.func.grad(f), backend="aot_eager", fullgraph=True)(u)


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1.0), (np.float32, 1e4), (np.float64, 1e8)])
def test_the_size_of_a_cotangent_costs_no_accuracy(dtype, size, seed):
    u, ct = ref.normal(seed, 66, dtype=dtype), ref.normal(seed, 12, 12, dtype=dtype)
    expected = ref.exponential_vjp(ct, u)["upper"]
    c = torch.from_numpy(dtype(size) * ct)
    for found in derivatives(lambda u: (it.Exponential(u).matrix() * c).sum(), torch.from_numpy(u)):
        close(found.numpy() / dtype(size), expected, gradient(dtype, 12))


def test_the_size_of_a_cotangent_of_one_number():
    """n = 1 has no kernel: W = e^{i g}."""
    g = torch.tensor([0.7], requires_grad=True)
    w = it.Exponential(torch.zeros(0, dtype=torch.complex64), diagonal=g).matrix()
    (1e4 * w.imag.sum()).backward()
    assert g.grad.item() == pytest.approx(1e4 * np.cos(0.7), rel=4 * eps(np.float32))


def test_repeated_eigenvalues_are_harmless(seed):
    """p = 0: W = I, and the derivative is the identity; so it is for a multiple of 2 pi in every plane."""
    w_bar = ref.normal(seed, 6, 6)
    above = np.triu_indices(6, 1)
    op = iso.Exponential(np.zeros(15))
    identical(op.matrix(), np.eye(6))
    close(op.matrix_vjp(w_bar)["upper"], (w_bar - w_bar.T)[above], TIGHT)
    turns = np.zeros(15)
    turns[[0, 9, 14]] = 2 * np.pi
    op = iso.Exponential(turns)
    close(op.matrix(), np.eye(6), TIGHT)
    close(op.matrix_vjp(w_bar)["upper"], ref.exponential_vjp(w_bar, turns)["upper"], 10 * TIGHT)
