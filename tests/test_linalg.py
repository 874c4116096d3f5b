"""linalg of both faces: values and gradients for every tau, dtypes, batches and threads."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES
from subjects import fold
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


def stack(function, *arrays):
    """A reference of single matrices on stacks with one batch axis."""
    return np.stack([function(*each) for each in zip(*arrays, strict=True)])


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
def test_geqrf_of_batches_and_larger_matrices(dtype, seed):
    """Panels and products give the factors of the columns one by one; Q R is the matrix."""
    for shape in ((3, 33, 20), (2, 2, 40, 7), (100, 70), (60, 90)):
        x = ref.normal(seed, *shape, dtype=dtype)
        m, k = shape[-2], min(shape[-2:])
        a, tau = both(lambda f, x: f.geqrf(x), x)
        q = iso.linalg.ormqr(a[..., :k], tau, np.triu(a))
        close(q, x, forward(dtype, m), f"{shape}")
        close(np.triu(a)[..., :k, :], np.triu(stack(lambda x: ref.geqrf(x)[0], *[x.reshape(-1, *shape[-2:])]))
              .reshape(x.shape)[..., :k, :], forward(dtype, 64 * m), f"R {shape}")  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_geqrf_of_delicate_columns(dtype, seed):
    """Zero ones, ones that are zero below the diagonal, tiny and huge ones; gradients are finite."""
    tiny, huge = (1e-30, 1e30) if np.finfo(dtype).eps > 1e-10 else (1e-160, 1e150)
    x = ref.normal(seed, 6, 4, dtype=dtype) * np.array([1, 0, tiny, huge], np.float64).astype(dtype)
    x[1:, 0] = 0
    x[0, 0] = -2
    a, tau = iso.linalg.geqrf(x)
    assert np.isfinite(a).all() and np.isfinite(tau).all() and tau[0] == 0 and a[0, 0] == -2
    size = np.abs(ref.wide(x)).max(0)
    size[1] = 1
    back = ref.reflectors(a, tau) @ (np.triu(ref.wide(a)) / size)
    close(back, ref.wide(x) / size, forward(dtype, 6))
    assert np.isfinite(iso.linalg.geqrf_vjp(x[:, :2], x[:, :2], tau[:2])).all()


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
