"""linalg of both faces: values and gradients for every tau, dtypes, batches, threads and structure; QR."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES
from subjects import fold
from support import orthogonal, structure
from support.sizes import sizes
from tolerance import TIGHT, UNITARITY, close, forward, gradient, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
SIZES = ((1, 1), (5, 1), (5, 3), (4, 4), (4, 0), (33, 20), (70, 66))
KINDS = ("orthogonal", "zero", "any", "projector", "nearly a projector")
SIDES = ((True, False), (True, True), (False, False), (False, True))


def problem(rng, *shape, dtype, kind="any"):
    """a, and tau of a kind: any numbers, zero, or tau ||v||^2 = 2, 1, 1 + 1e-6."""
    m, k = shape[-2:]
    a = ref.normal(rng, *shape, dtype=dtype) / dtype(m**0.5)
    if kind == "any":
        return a, ref.normal(rng, *shape[:-2], k, dtype=dtype)
    size = 1 + (np.abs(ref.wide(np.tril(a, -1))) ** 2).sum(-2)
    times = {"orthogonal": 2, "zero": 0, "projector": 1, "nearly a projector": 1 + 1e-6}[kind]
    return a, (times / size).astype(dtype)


def bound(rule, dtype, a, tau):
    """Factors that are not orthogonal magnify rounding errors by their norms."""
    norm = np.prod([max(1.0, np.linalg.norm(f, 2)) for f in ref.reflector_factors(a, tau)])
    return rule(dtype, a.shape[-2], float(norm))


def both(call, *arrays):
    """The result of the NumPy face, after that of torch was found to be the same bits."""
    found = call(iso.linalg, *arrays)
    tensors = call(it.linalg, *[torch.from_numpy(a) for a in arrays])
    pairs = zip(found, tensors, strict=True) if isinstance(found, tuple) else [(found, tensors)]
    for own, tensor in pairs:
        identical(tensor.numpy(), own)
    return found


@DTYPE
@pytest.mark.parametrize("kind", KINDS)
def test_products_and_gradients(dtype, kind, seed):
    """Of the factors one after another, with matrices from both sides; gradients by the product rule, finite where a
    factor has no inverse."""
    for m, k in SIZES:
        a, tau = problem(seed, m, k, dtype=dtype, kind=kind)
        q, (within, steep) = ref.reflectors(a, tau), (bound(rule, dtype, a, tau) for rule in (forward, gradient))
        close(both(lambda f, a, t: f.householder_product(a, t), a, tau), q[:, :k], within, floor=1.0)
        ct, x, large = ref.normal(seed, m, k, dtype=dtype), ref.normal(seed, m, 3, dtype=dtype), m > 60
        if not large:
            expected = ref.reflectors_vjp(np.pad(ref.wide(ct), ((0, 0), (0, m - k))), a, tau)
            for g, e in zip(iso.linalg.householder_product_vjp(a, tau, ct), expected, strict=True):
                close(g, e, steep, f"{m} {k}", floor=1.0)
        for left, transpose in SIDES:
            rows, way = (y if left else np.ascontiguousarray(y.T) for y in (x, 2 * x[::-1]))
            p, what = q.conj().T if transpose else q, f"{m} {k} left {left} transpose {transpose}"
            found = both(lambda f, *own, how=(left, transpose): f.ormqr(*own, *how), a, tau, rows)
            close(found, p @ rows if left else rows @ p, within, what, floor=1.0)
            if not large:
                outer = way @ rows.conj().T if left else rows.conj().T @ way
                own = ref.reflectors_vjp(outer.conj().T if transpose else outer, a, tau)
                expected = *own, p.conj().T @ way if left else way @ p.conj().T
                for g, e in zip(iso.linalg.ormqr_vjp(a, tau, rows, way, left, transpose), expected, strict=True):
                    close(g, e, steep, what, floor=1.0)


@DTYPE
def test_the_cayley_transform(dtype, seed):
    """Of full skew matrices; its gradient is skew, and that of the packed entries along skew directions."""
    for shape in ((1, 1), (7, 7), (3, 2, 5, 5)):
        g = ref.normal(seed, *shape, dtype=dtype)
        a, ct = g - np.conj(np.swapaxes(g, -1, -2)), ref.normal(seed, *shape, dtype=dtype)
        w = both(lambda f, a: f.cayley(a), a)
        assert w.dtype == dtype
        eye, wide = np.eye(shape[-1]), ref.wide(a)
        close(w, np.linalg.solve(eye + wide, eye - wide), forward(dtype, shape[-1], 4.0))
        bar = iso.linalg.cayley_vjp(a, ct)
        identical(bar, -np.conj(np.swapaxes(bar, -1, -2)) + 0 * bar)
        # dW = -(I + A)^-1 dA (I + W)
        inverse = np.linalg.inv(eye + wide)
        full = -np.conj(np.swapaxes(inverse, -1, -2)) @ ref.wide(ct) @ np.conj(np.swapaxes(eye + w, -1, -2))
        close(bar, (full - np.conj(np.swapaxes(full, -1, -2))) / 2, gradient(dtype, shape[-1], 4.0))
        leaf = torch.from_numpy(a).requires_grad_()
        (found,) = torch.autograd.grad(it.linalg.cayley(leaf), leaf, torch.from_numpy(ct))
        close(found.resolve_conj().numpy(), bar, gradient(dtype, shape[-1], 4.0))
    for size in (1.0, 1000.0):
        a = a * dtype(size / np.linalg.norm(a, 2, axis=(-2, -1)).max())
        assert iso.orthogonality_error(iso.linalg.cayley(a)).max() <= UNITARITY + np.hypot(1, size)


def test_fewer_numbers_tau_than_columns(seed):
    """The missing ones are zero, as in torch."""
    a, tau = problem(seed, 2, 6, 4, dtype=np.float64, kind="orthogonal")
    few = np.ascontiguousarray(tau[:, :2])
    found = both(lambda f, a, t: f.householder_product(a, t), a, few)
    identical(found, iso.linalg.householder_product(a, np.concatenate((few, 0 * few), -1)))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])
def test_batches_broadcast(dtype, seed):
    """As if they were written out; the gradients are sums over the axes that were not."""
    a, _ = problem(seed, 3, 1, 5, 4, dtype=dtype)
    leads = (3, 1), (2,), (1, 2)
    given = [a, ref.normal(seed, 2, 4, dtype=dtype) / 2, ref.normal(seed, 1, 2, 5, 3, dtype=dtype)]
    whole = [np.broadcast_to(x, (3, 2, *x.shape[len(lead) :])) for x, lead in zip(given, leads, strict=True)]
    ct, thin = ref.normal(seed, 3, 2, 5, 3, dtype=dtype), ref.normal(seed, 3, 2, 5, 4, dtype=dtype)
    close(iso.linalg.householder_product(*given[:2]), iso.linalg.householder_product(*whole[:2]), TIGHT)
    close(iso.linalg.ormqr(*given), iso.linalg.ormqr(*whole), TIGHT)
    found = *iso.linalg.householder_product_vjp(*given[:2], thin), *iso.linalg.ormqr_vjp(*given, ct)
    expected = *iso.linalg.householder_product_vjp(*whole[:2], thin), *iso.linalg.ormqr_vjp(*whole, ct)
    for one, two in zip(found, expected, strict=True):
        close(one, fold(two, one.shape), TIGHT)


def test_dtypes(seed):
    """NumPy promotes, and gradients have the dtypes of their arguments; torch refuses mixed precisions by name."""
    a, tau = problem(seed, 4, 2, dtype=np.float64)
    single = a.astype(np.float32)
    assert iso.linalg.householder_product(single, tau).dtype == np.float64
    assert iso.linalg.householder_product(np.ones((3, 2), int), np.ones(2, int)).dtype == np.float64
    grads = iso.linalg.ormqr_vjp(single, tau + 0j, a, np.ones((4, 2)))
    assert [g.dtype.name for g in grads] == ["float32", "complex128", "float64"]
    with pytest.raises(TypeError, match=r"tau is float32 and A is float64"):
        it.linalg.householder_product(torch.from_numpy(a), torch.from_numpy(tau).float())
    mixed = it.linalg.householder_product(torch.from_numpy(a), torch.from_numpy(tau).to(torch.complex128))
    assert mixed.dtype == torch.complex128
    for name in ("householder_product", "ormqr"):
        with pytest.raises(TypeError, match="float16"):
            rest = (a,) if name == "ormqr" else ()
            getattr(iso.linalg, name)(a.astype(np.float16), tau, *rest)


@DTYPE
def test_infinities_reach_the_same_entries_with_any_number_of_threads(dtype):
    """An infinity in the last column of V, which stored zeros of neighbouring columns would spread."""
    rng, m, k = np.random.default_rng(0), 20_000, 13
    a, tau = (x.copy() for x in iso.linalg.geqrf(ref.normal(rng, m, k, dtype=dtype)))
    a[-1, -1] = np.inf
    others = [ref.normal(rng, m, columns, dtype=dtype) for columns in (3, 16)]
    keywords = [{"transpose": t, "check_finite": False} for t in (False, True)]
    before, found = iso.get_num_threads(), []
    try:
        for threads in (1, 2, 8):
            iso.set_num_threads(threads)
            found.append([iso.linalg.ormqr(a, tau, x, **own) for x in others for own in keywords])
            found[-1] += [iso.linalg.ormqr(a, tau, x.T.copy(), left=False, **own) for x in others for own in keywords]
            found[-1] += iso.linalg.geqrf(np.hstack((a, *others)), check_finite=False)
    finally:
        iso.set_num_threads(before)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(np.isfinite(one), np.isfinite(two))


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


MODES = ("reduced", "complete")
SHAPES = ((1, 1), (5, 3), (3, 5), (4, 4), (2, 3, 6, 4), (0, 4, 3), (3, 0), (0, 3), (0, 0), (2, 40, 37), (33, 70))


def cases(rng, shape, dtype):
    """Dense matrices, and those with columns that are zero, copies, or multiples of a unit vector."""
    a = ref.normal(rng, *shape, dtype=dtype)
    yield a
    yield np.zeros_like(a)
    if min(shape[-2:]) > 1:
        b = a.copy()
        b[..., 0] = 0
        b[..., -1] = b[..., 1]
        yield b
        yield np.triu(a)
        yield np.asfortranarray(a)[..., ::-1]
        yield np.broadcast_to(a[..., :1], a.shape)


@DTYPE
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_values(dtype, shape, mode, seed):
    for a in cases(seed, shape, dtype):
        found = iso.linalg.qr(a, mode)
        q, r = found
        p, s = np.linalg.qr(a, mode)
        assert q.shape == p.shape and r.shape == s.shape and q.dtype == r.dtype == a.dtype
        assert found.Q is q and found.R is r
        bound = 20 * np.finfo(dtype).eps * max(*shape[-2:], 1)
        assert np.abs(q @ r - a).max(initial=0) <= bound * max(1, np.abs(a).max(initial=0))
        assert np.abs(np.swapaxes(q, -1, -2).conj() @ q - np.eye(q.shape[-1])).max(initial=0) <= bound
        assert not np.tril(r, -1).any()
        factors, _ = iso.linalg.geqrf(a)
        identical(np.diagonal(r, axis1=-2, axis2=-1), np.diagonal(factors, axis1=-2, axis2=-1))
        other = it.linalg.qr(torch.from_numpy(np.array(a)), mode)
        for one, two in zip(other, found, strict=True):
            identical(one.numpy(), two)
        assert other.Q is other[0] and other.R is other[1]


@DTYPE
def test_signs_are_those_of_numpy(dtype, seed):
    """Both are LAPACK's."""
    a = ref.normal(seed, 3, 6, 4, dtype=dtype)
    for mode in MODES:
        for one, two in zip(iso.linalg.qr(a, mode), np.linalg.qr(a, mode), strict=True):
            assert np.abs(one - two).max() < 1e3 * np.finfo(dtype).eps


def test_a_tall_matrix_has_no_complete_derivatives():
    a = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="^A must have at least as many columns as rows with mode='complete'"):
        it.linalg.qr(a, "complete")
    with torch.no_grad():
        it.linalg.qr(a, "complete")
    it.linalg.qr(a.detach(), "complete")


def test_tensors_for_the_results():
    x = torch.randn(5, 4, dtype=torch.float64)
    for mode in MODES:
        out = torch.empty(0, dtype=x.dtype), torch.empty(0, dtype=x.dtype)
        found = it.linalg.qr(x, mode, out=out)
        assert found.Q is out[0] and torch.equal(out[1], it.linalg.qr(x, mode)[1])
    with pytest.raises(RuntimeError, match="^out must be None"):
        it.linalg.qr(torch.ones(2, 2, requires_grad=True), out=(torch.empty(0), torch.empty(0)))
