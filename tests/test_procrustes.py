"""Nearest orthogonal matrices and their scale: singular values, gradients, singular and huge matrices."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from isometry._inverse.procrustes import _SMALL as SMALL
from isometry.torch.formulas import procrustes as formula
from registry import DTYPES, is_complex
from support import structure
from support.nearest import errors, gradient_error
from tolerance import identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
# on both sides of what is decomposed in lanes, of the blocks of passes and of the inverse
STRUCTURED = (
    *((2, 2), (5, 5), (20, 4), (SMALL, SMALL), (SMALL, 11)),
    *((SMALL + 1, SMALL + 1), (SMALL + 1, 14), (17, 17), (40, 12), (33, 34), (65, 65)),
)
BOUND = 40  # max(m, n) eps of a value, n eps s_1 / (s_i + s_j) of a gradient


def both(a, **options):
    """The result of the NumPy face, after that of torch was found to be the same bits."""
    w = iso.linalg.procrustes(a, **options)
    identical(it.linalg.procrustes(torch.from_numpy(a), **options).numpy(), w)
    return w


def conditioned(rng, *shape, dtype, least=0.3):
    """Matrices with singular values in [least, 1]."""
    u, s, vh = np.linalg.svd(ref.wide(ref.normal(rng, *shape, dtype=dtype)), full_matrices=False)
    a = u * (least + (1 - least) * rng.random(s.shape))[..., None, :] @ vh
    return (a if is_complex(dtype) else a.real).astype(dtype)


@DTYPE
@pytest.mark.parametrize(
    ("size", "least"),
    [
        *(((m, n), least) for m, n in ((3, 3), (9, 9), (40, 25), (25, 40)) for least in (1.0, 0.3, 1e-3)),
        ((150, 150), 1e-3),
        ((220, 220), 0.3),
    ],
    ids=str,
)
def test_singular_values_of_a_range(dtype, size, least, seed):
    a = conditioned(seed, 2, *size, dtype=dtype, least=least)
    examine(a, ref.normal(seed, *a.shape, dtype=dtype))
    identical(iso.linalg.procrustes(a * dtype(2.0**60)), iso.linalg.procrustes(a))
    for special in (False, True) if size[0] == size[1] and not is_complex(dtype) else (False,):
        measured(a, special)


def examine(a, ct, *, special=False):
    """W and the gradient of a stack in both faces; the largest errors, and the number of gradients at the limit."""
    w = both(a, special=special)
    value = errors(a, w, special=special).max()
    bar = iso.linalg.procrustes_vjp(a, ct, special=special)
    t = torch.from_numpy(a).requires_grad_()
    it.linalg.procrustes(t, special=special).backward(torch.from_numpy(ct))
    identical(t.grad.numpy(), bar)
    assert value <= BOUND, f"W of {a.dtype} {a.shape[1:]} is off by {value:.1e} max(m, n) eps"
    worst, at_limit = 0.0, 0
    for each in zip(a, w, ct, bar, strict=True):
        error, near = gradient_error(*each, special=special)
        at_limit += near and np.isfinite(error)
        assert error <= BOUND or (near and np.isfinite(error)), (
            f"gradient of {a.dtype} {a.shape[1:]} is off by {error:.1e} n eps s_1 / (s_i + s_j)"
        )
        worst = max(worst, 0 if near else error)
    return value, worst, at_limit


def measured(a, special):
    """The scale is the sum of the singular values, its gradient W."""
    w = iso.linalg.procrustes(a, special=special)
    other, scale = iso.linalg.procrustes(a, special=special, return_scale=True)
    identical(other, w)
    assert scale.shape == a.shape[:1] and scale.dtype == a.real.dtype
    s = np.linalg.svd(ref.wide(a), compute_uv=False)
    sums = s.sum(-1)
    if special:
        s[..., -1] *= np.where(np.linalg.slogdet(ref.wide(a))[0] < 0, -1, 1)
    t = torch.from_numpy(a).requires_grad_()
    other, found = it.linalg.procrustes(t, special=special, return_scale=True)
    identical(other.detach().numpy(), w)
    for each in (scale, found.detach().numpy()):
        assert (np.abs(each - s.sum(-1)) <= BOUND * np.finfo(a.dtype).eps * max(a.shape[1:]) * sums).all()
    found.sum().backward()
    identical(t.grad.numpy(), w)


@structure.named
def test_structure(structure, seed):
    """Both laws for every class, dtype and way of computing, the nearest rotations too: two matrices of each."""
    for dtype in DTYPES:
        for m, n in STRUCTURED:
            draw_and_examine(seed, structure, (2, m, n), dtype)


def draw_and_examine(rng, name, shape, dtype, phases="random"):
    a, ct = structure.draw(name, rng, shape, dtype, phases), ref.normal(rng, *shape, dtype=dtype)
    found = [examine(a, ct)]
    if shape[1] == shape[2] and not is_complex(dtype):
        found.append(examine(a, ct, special=True))
    return found


@DTYPE
@pytest.mark.parametrize("n", [SMALL, SMALL + 1, 30, 70])
def test_one_small_singular_value_costs_no_digits(dtype, n, seed):
    """The derivative depends on s_i + s_j, of which none is small; s_n itself counts of complex matrices."""
    eps = np.finfo(dtype).eps
    ct = ref.normal(seed, n, n, dtype=dtype)
    u, _, vh = np.linalg.svd(ref.wide(ref.normal(seed, n, n, dtype=dtype)))
    for small in (1e-3, 1e-6, 1e-12, 1e-20, 0.0):
        s = np.append(1 + seed.random(n - 1), small)
        wide = (u * s) @ vh
        a = wide.astype(dtype)
        for special in (False,) if is_complex(dtype) else (False, True):
            w, bar = both(a, special=special), iso.linalg.procrustes_vjp(a, ct, special=special)
            error, near = gradient_error(a, w, ct, bar, special=special)
            assert error <= BOUND or near
            if not is_complex(dtype) and small > 100 * n * eps:
                # the gradient of the matrix in double precision
                expected = iso.linalg.procrustes_vjp(wide, ref.wide(ct), special=special)
                assert np.abs(bar - expected).max() < 40 * n * eps * np.abs(expected).max()
            if not is_complex(dtype):
                t = torch.from_numpy(a).requires_grad_()
                w = it.linalg.procrustes(t, special=special)
                once = torch.autograd.grad(w, t, torch.from_numpy(ct), create_graph=True)[0]
                assert torch.autograd.grad((once**2).sum(), t)[0].abs().max() < 1e4


@DTYPE
@pytest.mark.parametrize("size", [(5, 5), (SMALL, SMALL), (SMALL + 1, SMALL + 1), (12, 20), (30, 14)], ids=str)
def test_a_member_has_the_bits_it_has_alone(dtype, size, seed):
    """Beside members of every class, of which one is NaN or infinite: it alone becomes NaN, in values and gradients."""
    a = structure.stack(seed, len(structure.CLASSES), size, dtype)
    ct = ref.normal(seed, *a.shape, dtype=dtype)
    for wrong in (None, np.nan, np.inf):
        k = int(seed.integers(len(a)))
        if wrong is not None:
            a[k].flat[seed.integers(a[k].size)] = wrong
        for special in (False, True) if size[0] == size[1] and not is_complex(dtype) else (False,):
            w = iso.linalg.procrustes(a, special=special, check_finite=False)
            bar = iso.linalg.procrustes_vjp(a, ct, special=special, check_finite=False)
            t = torch.from_numpy(a).requires_grad_()
            it.linalg.procrustes(t, special=special).backward(torch.from_numpy(ct))
            bad = ~np.isfinite(a).all((1, 2))
            for found in (w, bar, t.grad.numpy()):
                assert np.isnan(found[bad]).all() and np.isfinite(found[~bad]).all()
            for j in np.flatnonzero(~bad):
                identical(iso.linalg.procrustes(a[j], special=special), w[j])
                identical(iso.linalg.procrustes_vjp(a[j], ct[j], special=special), bar[j])
                identical(t.grad[j].numpy(), bar[j])


@pytest.mark.parametrize("n", [3, SMALL, SMALL + 1, 12, 40])
def test_any_scale(n, seed):
    """Singular values over the whole range of the type, and single entries at its end."""
    for dtype, top in ((np.float64, 300), (np.complex128, 300), (np.float32, 37), (np.complex64, 37)):
        spread = np.logspace(-top, top, n)
        turned = np.linalg.qr(seed.standard_normal((n, n)))[0]
        single = np.repeat(ref.normal(seed, 1, n, n, dtype=dtype), 3, axis=0)
        single[0, 1, 2], single[1, 1, 2], single[2, 0] = 10.0**top, 10.0 ** (top // 3), 10.0**top
        for a in (np.diag(spread), spread * turned, spread[:, None] * turned, *single):
            a = np.asarray(a, dtype)[None]
            for special in (False,) if is_complex(dtype) else (False, True):
                assert errors(a, both(a, special=special), special=special).max() <= BOUND
                assert np.isfinite(iso.linalg.procrustes_vjp(a, a / 10.0**top, special=special)).all()


def test_second_derivatives_beside_nan(seed):
    """A member that is not finite leaves those of others as they are."""
    for n in (4, 12):
        a = torch.from_numpy(seed.standard_normal((3, n, n)))

        def twice(a):
            a = a.clone().requires_grad_()
            once = torch.autograd.grad((it.linalg.procrustes(a) ** 3).sum(), a, create_graph=True)[0]
            return torch.autograd.grad((once**2).sum(), a)[0]

        expected = twice(a)
        a[1, 0, 0] = torch.nan
        found = twice(a)
        assert found[1].isnan().all()
        assert torch.allclose(found[[0, 2]], expected[[0, 2]], rtol=1e-10)


@pytest.mark.parametrize("part", [0, 1], ids=["w", "scale"])
@pytest.mark.parametrize(
    ("shape", "special", "dtype"),
    [((2, 4, 3), False, torch.float64), ((3, 4), False, torch.complex128), ((2, 3, 3), True, torch.float64)],
    ids=["thin", "complex", "rotation"],
)
def test_third_derivatives_are_nan_rather_than_wrong(part, shape, special, dtype):
    torch.manual_seed(0)
    a, ct = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
    by = 1 if part else ct
    call = lambda a: (it.linalg.procrustes(a, special=special, return_scale=True)[part] * by).real.sum()
    along = lambda f: lambda t: torch.func.jvp(f, (t,), (torch.ones_like(t),))[1]
    line = along(along(lambda t: call(a + t * ct)))
    assert line(torch.zeros((), dtype=torch.float64)).isfinite()
    assert along(line)(torch.zeros((), dtype=torch.float64)).isnan()
    y, at = call(a.requires_grad_()), a
    for order in (1, 2, 3):
        (y,) = torch.autograd.grad(y.real.sum(), at, create_graph=True)
        assert y.isfinite().all() if order < 3 else y.isnan().all(), order


@DTYPE
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (SMALL, SMALL + 1), (17, 12)], ids=str)
def test_the_formula_of_denormal_and_largest_numbers(dtype, size, seed):
    """The inverses of the first overflow, and so do absolute values of complex ones of the second."""
    limits = np.finfo(dtype)
    signs = [seed.choice([-1.0, 1.0], size) for _ in range(2)]
    for scale in (float(limits.smallest_subnormal), 0.1 * float(limits.tiny), float(limits.max)):
        # of full rank: the diagonal is larger than what is beside it
        parts = [np.where(np.eye(*size), sign * scale, sign * scale / 64) for sign in signs]
        a = np.empty(size, dtype)
        a.real = parts[0]
        if is_complex(dtype):
            a.imag = parts[1]
        found = formula.nearest(torch.from_numpy(a), False).numpy()  # of a wide matrix too
        assert np.abs(found - iso.linalg.procrustes(a)).max() < BOUND * max(size) * limits.eps, scale


# ---------------------------------------------------------------- the scale


def test_singular_zero_huge_and_empty(seed):
    a = conditioned(seed, 4, 3, 3, dtype=np.float64)
    a[1], a[2], a[3, :, 1] = 0, 2.0**600 * a[2], a[3, :, 0]
    scale = iso.linalg.procrustes(a, return_scale=True)[1]
    expected = np.linalg.svd(a, compute_uv=False).sum(-1)
    assert scale[1] == 0 and np.allclose(scale, expected, rtol=1e-13)
    a[0, 0, 0] = np.nan
    scale = iso.linalg.procrustes(a, return_scale=True, check_finite=False)[1]
    assert np.isnan(scale[0]) and np.allclose(scale[1:], expected[1:], rtol=1e-13)
    for shape in ((0, 3, 2), (2, 0, 3), (2, 3, 0)):
        assert iso.linalg.procrustes(np.zeros(shape), return_scale=True)[1].tolist() == [0.0] * shape[0]
        assert it.linalg.procrustes(torch.zeros(shape), return_scale=True)[1].tolist() == [0.0] * shape[0]
    assert iso.linalg.procrustes(np.eye(3), return_scale=True)[1] == 3


def test_the_similarity_between_points(seed):
    """Points turned, scaled and moved back by W and the scale."""
    p = seed.standard_normal((20, 3))
    w = iso.Householder.haar(3, rng=seed, special=True).matrix()
    q = 2.5 * p @ w.T
    found, scale = iso.linalg.procrustes(q.T @ p, special=True, return_scale=True)
    assert np.allclose(found, w) and np.isclose(scale / (p**2).sum(), 2.5)
