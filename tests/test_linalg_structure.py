"""linalg, cayley_step and Hadamard transforms of arrays with structure: factors multiply back, steps stay on the
manifold, gradients are finite."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from reference.hadamard import entries
from registry import DTYPES
from support import orthogonal, structure
from support.sizes import sizes
from tolerance import UNITARITY, close, eps, forward, gradient

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
OWN = sizes("qr", "qr_vjp", "reflectors", "wy")
SMALL = [n for n in OWN if n <= 17]


def drawn(rng, kind, shape, dtype):
    return structure.draw(kind, rng, shape, dtype, rng.choice(["random", "none", "quarter"]))


def shapes(rng, count=3):
    """Of matrices: any two sizes, and a square."""
    for k in range(count):
        m, n = (int(n) for n in rng.choice(SMALL, 2))
        yield (m, m) if k == 0 else (m, n)


def parts(a):
    """Q and R of the factors, after those of torch were found to be the same bits."""
    factors, tau = iso.linalg.geqrf(a)
    assert all(np.array_equal(*pair) for pair in zip(it.linalg.geqrf(torch.from_numpy(a)), (factors, tau), strict=True))
    k = min(a.shape)
    reflectors = np.ascontiguousarray(factors[:, :k])
    q = iso.linalg.ormqr(reflectors, tau, np.eye(len(a), dtype=a.dtype))
    close(iso.linalg.householder_product(reflectors, tau), q[:, :k], forward(a.dtype, len(a)), "thin Q")
    return q, np.triu(factors)


def multiplies_back(a):
    """Q R = A column by column, where products of two columns are no denormals, Q unitary, the diagonal of R real."""
    q, r = parts(a)
    assert ref.orthogonality_error(q) <= UNITARITY
    assert not np.diagonal(r).imag.any()
    wide = ref.wide(a)
    least = np.sqrt(np.finfo(a.dtype).tiny) * max(1.0, np.abs(wide).max())
    gap = np.linalg.norm(ref.wide(q) @ ref.wide(r) - wide, axis=0)
    worst = (gap / np.maximum(np.linalg.norm(wide, axis=0), least)).max()
    assert worst <= forward(a.dtype, max(a.shape)), f"Q R - A: {worst:.1e}"


def pulls_back(a, rng):
    """Finite; where A has full rank, that of the loss <C, Q R>, which is <C, A>."""
    m, n = a.shape
    ct, tau_ct = ref.normal(rng, m, n, dtype=a.dtype), ref.normal(rng, min(m, n), dtype=a.dtype)
    assert np.isfinite(iso.linalg.geqrf_vjp(a, ct, tau_ct)).all(), "the gradient is not finite"
    if n > m:
        return
    s = np.linalg.svd(ref.wide(a), compute_uv=False)
    below = [np.abs(column[j + 1 :]).max(initial=0) for j, column in enumerate(iso.linalg.geqrf(a)[0].T)]
    if s[-1] * 1e3 < s[0] or m == n or min(below) < 1e-3:
        return  # ill-conditioned, or a column that is its own factor, where Q R has no derivative
    x = torch.from_numpy(a).requires_grad_()
    factors, tau = it.linalg.geqrf(x)
    product = it.linalg.householder_product(factors, tau) @ torch.triu(factors[:n])
    (product * torch.from_numpy(ct).conj()).sum().real.backward()
    close(x.grad.numpy(), ct, gradient(a.dtype, m, s[0] / s[-1]), "gradient of <C, Q R>")


@DTYPE
def test_factors_multiply_back(dtype, seed):
    for kind in structure.CLASSES:
        for shape in shapes(seed):
            a = drawn(seed, kind, shape, dtype)
            if np.abs(a).max(initial=0) < 1e20:
                multiplies_back(a)
            if kind not in structure.SCALED:
                pulls_back(a, seed)


@DTYPE
def test_factors_of_larger_matrices_multiply_back(dtype, seed):
    large = [n for n in OWN if n > 17]
    for kind in seed.permutation(list(structure.CLASSES))[:6]:
        a = drawn(seed, kind, (int(seed.choice(large)), int(seed.choice(large))), dtype)
        multiplies_back(a)
        if kind not in structure.SCALED:
            pulls_back(a, seed)


@DTYPE
def test_steps_stay_on_the_manifold(dtype, seed):
    """From structured W along structured gradients; without a gradient W stays."""
    own = sizes("cayley", "lanes")
    for k, kind in enumerate(structure.CLASSES):
        n = own[k % len(own)]
        g = drawn(seed, kind, (n, n), dtype)
        w = orthogonal.draw(seed.choice(list(orthogonal.NAMED)), seed, n, dtype)
        if np.abs(g).max(initial=0) > 1e3:
            g = g / np.abs(g).max()  # e(W) grows like the step
        for rate in (0.0, 0.1, 30.0):
            found = iso.cayley_step(w, g, rate)
            assert ref.orthogonality_error(found) <= UNITARITY * (2 + rate), f"{kind}, n = {n}, rate {rate}"
            if rate == 0.0 or not np.any(g):
                close(found, w, forward(dtype, 4), f"{kind} without a step")
        x = [torch.from_numpy(a).requires_grad_() for a in (w, g)]
        torch.view_as_real(it.cayley_step(*x, 0.1) + 0j).square().sum().backward()  # abs() has NaN of denormal numbers
        assert all(torch.isfinite(t.grad).all() for t in x), f"{kind}, n = {n}: the gradient is not finite"


@DTYPE
def test_hadamard_transforms(dtype, seed):
    orders = [n for n in sizes("hadamard", "lanes") if entries(n) is not None] + [12, 20, 64]
    for k, kind in enumerate(structure.CLASSES):
        n = orders[k % len(orders)]
        x = drawn(seed, kind, (3, n), dtype)
        size = np.abs(ref.wide(x)).sum(-1, keepdims=True)
        gap = np.abs(ref.wide(iso.hadamard_transform(x)) - ref.wide(x) @ entries(n).T)
        assert (gap <= 16 * eps(dtype) * size + n * np.finfo(dtype).tiny).all(), f"{kind}, n = {n}"
