"""Unusual numbers: denormals, huge and infinite entries without warnings, norms, mixed precision, real forms."""

import numpy as np
import pytest
import torch
from torch.func import vmap

import isometry as iso
import isometry.torch as it
import reference as ref
from derivatives import compiled
from faces import tensor
from registry import DTYPES, is_complex, real_of
from test_odd_arguments import CALLS
from tolerance import close, forward, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: np.dtype(d).name)
FACES = pytest.mark.parametrize("api,array", [(iso, np.asarray), (it, torch.as_tensor)], ids=["numpy", "torch"])


def denormals(dtype, *shape):
    """Numbers between 0 and the smallest normal one."""
    return (np.linspace(0.1, 0.9, np.prod(shape)).reshape(shape) * np.finfo(dtype).tiny).astype(dtype)


@FACES
@DTYPE
def test_denormal_numbers_count_as_zero(api, array, dtype, seed):
    """In every computing kernel: an operator on rows, a recurrence, an activation."""
    u, a, w = (ref.normal(seed, *shape, dtype=dtype) for shape in ((6, 2), (15,), (6, 6)))
    x, v, h0 = denormals(dtype, 4, 3, 6), np.eye(6, dtype=dtype), denormals(dtype, 3, 6)
    assert np.count_nonzero(x) == x.size
    for op in (api.Householder(array(u)), api.Cayley(array(a)), api.Dense(array(w))):
        assert not np.count_nonzero(op.apply(array(x)))
        assert not np.count_nonzero(op.apply_adjoint(array(x)))
        states = api.recurrence(op, array(x), array(v), h0=array(h0), activation="identity")
        assert not np.count_nonzero(states)
    bias = array(np.ones(6, real_of(dtype)))
    assert not np.count_nonzero(api.activate(array(x), "tanh"))
    assert not np.count_nonzero(api.activate(array(x), "modrelu", bias=bias))


@FACES
@DTYPE
def test_what_is_copied_keeps_denormal_numbers(api, array, dtype):
    x = denormals(dtype, 4, 6)
    op = api.Householder(array(np.zeros((6, 0), dtype)))
    for copy in (api.activate(array(x), "identity"), api.Dense(array(x)).matrix(), op.apply(array(x))):
        identical(np.asarray(copy), x)


@FACES
@DTYPE
def test_the_lengths_that_reflection_vectors_may_have(api, array, dtype, seed):
    """The squared norm is a normal number of the type, at both ends of the range."""
    u = ref.normal(seed, 5, 1, dtype=dtype)
    u /= np.linalg.norm(u)
    for length, inside in zip(
        [1.0e-19, 1.2e-19, 1.8e19, 1.9e19] if real_of(dtype) is np.float32 else [1.4e-154, 1.6e-154, 1.3e154, 1.4e154],
        [False, True, True, False],
        strict=True,
    ):
        vectors = array((length * u).astype(dtype))
        if inside:
            close(np.asarray(api.Householder(vectors).matrix()), ref.householder(u), forward(dtype, 5))
        else:
            with pytest.raises(ValueError, match="vectors must not contain .* denormal"):
                api.Householder(vectors)


@REAL
def test_signs_promote_as_every_array_does(dtype):
    """NumPy face: float64 signs, as which integers are read, make W float64; those of a float32 W are float32."""
    upper = np.ones(3, np.float32)
    for signs in ([1, 1, -1], [1.0, 1.0, -1.0], np.array([1, 1, -1]), np.array([1.0, 1.0, -1.0])):
        op = iso.Cayley(upper, signs=signs)
        assert op.dtype == op.matrix().dtype == np.float64
        assert op.matrix_vjp(np.eye(3))["upper"].dtype == np.float32
    signs = np.array([1, 1, -1], dtype)
    assert iso.Cayley(upper, signs=signs).dtype == dtype
    w = iso.Cayley(upper, signs=signs).matrix().astype(np.float32)
    assert iso.Cayley.from_matrix(w, signs).upper.dtype == dtype


SHAPES = ((50, 21), (4, 5, 34, 34))


@pytest.mark.parametrize("w", [np.eye(3) * 1e200, np.full((2, 2), 1e200), np.full((2, 2), 1e200 + 1e200j)], ids=str)
def test_orthogonality_error_of_huge_entries(w):
    """Infinity, even where products cancel; no warning, which would be an error."""
    signed = w * np.where(np.tri(len(w), k=-1).T, -1, 1)
    for error in (iso.orthogonality_error, lambda w: it.orthogonality_error(tensor(w))):
        assert error(w) == error(signed) == np.inf
    stack = np.stack([np.eye(len(w)), w])
    assert iso.orthogonality_error(stack).tolist() == [0, np.inf]
    assert np.isnan(iso.orthogonality_error(w * np.nan, check_finite=False))


def test_orthogonality_error_of_an_operator(seed):
    op = it.Householder(tensor(ref.normal(seed, 3, 5, 2, dtype=np.float32)))
    assert torch.equal(it.orthogonality_error(op), it.orthogonality_error(op.matrix()))
    op = iso.Householder(ref.normal(seed, 3, 5, 2, dtype=np.float32))
    identical(iso.orthogonality_error(op), iso.orthogonality_error(op.matrix()))


@DTYPE
def test_orthogonality_error_is_compiled(dtype, seed):
    w = tensor(ref.normal(seed, 4, 5, 3, dtype=dtype))
    assert torch.equal(compiled(it.orthogonality_error)(w), it.orthogonality_error(w))


def test_orthogonality_error_is_mapped(seed):
    w = tensor(ref.normal(seed, 4, 5, 3, dtype=np.complex64))
    assert torch.equal(vmap(it.orthogonality_error)(w), it.orthogonality_error(w))


def extremes(a, dtype):
    """The array with its entries at the ends of the range, and as they cannot be."""
    info = np.finfo(dtype)
    for size in (info.max, info.max**0.5, info.max**0.49, info.tiny, info.smallest_subnormal, np.inf, np.nan):
        with np.errstate(all="ignore"):
            value = (a * size).astype(dtype)
        yield value


def tried(function, *arguments, **keywords):
    """A call that may refuse its arguments by an error, not by a warning; None then."""
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError):
        return None


@DTYPE
@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("numpy")])
def test_arguments_of_functions(name, dtype):
    call, given = CALLS[name]
    checks = [{"check_finite": False}, {}] if "check_finite" in given else [{}]
    arrays = {k: np.asarray(a) for k, a in given.items() if isinstance(a, (np.ndarray, list))}
    for argument, a in arrays.items():
        for value in extremes(a, dtype):
            for check in checks:
                tried(call, **{**given, **check, argument: value})


def test_arguments_of_operators(case, seed):
    n = case.size(4)
    given = case.draw(seed, n)
    for argument, a in given.items():
        for value in extremes(a, a.dtype) if a.dtype.kind in "fc" else ():
            op = tried(case.build, iso, {**given, argument: value}, n)
            if op is not None:
                x, y = (np.ones((2, size), op.dtype) for size in op.shape[::-1])
                more = [getattr(op, name) for name in dir(op) if name.startswith(("as_", "to_"))]
                for method in (op.matrix, op.det, *more):
                    tried(method, check_finite=False)
                tried(op.matrix_vjp, np.ones(op.shape, op.dtype), check_finite=False)
                tried(op.apply_vjp, x, y, check_finite=False)
                tried(op.apply_adjoint_vjp, y, x, check_finite=False)


@DTYPE
def test_steps_of_any_length(dtype, seed):
    a = ref.normal(seed, 4, 4, dtype=dtype)
    for w in extremes(a, dtype):
        for rate in (0.0, 1e-300, 1.0, 1e300):
            for pair in ((w, a), (a, w), (w, w)):
                tried(iso.cayley_step, *pair, rate, check_finite=False)


@DTYPE
def test_the_orthogonality_error_of_any_size(dtype):
    """That of s I is |s^2 - 1| / (n eps), or infinite, in both faces."""
    for w in (1e150 * np.eye(3, dtype=np.float64), *extremes(np.eye(3), dtype)):
        if np.isfinite(w).all():
            with np.errstate(over="ignore"):
                expected = abs(np.float64(abs(w[0, 0])) ** 2 - 1) / (3 * float(np.finfo(w.dtype).eps))
            assert iso.orthogonality_error(w) == pytest.approx(expected)
            found = it.orthogonality_error(torch.from_numpy(w))
            assert found.item() == pytest.approx(expected) or (
                expected > torch.finfo(found.dtype).max and found.isinf()
            )


#: Function -> its argument, the axes of one matrix or row, the value.
FORMS = {
    "real_matrix": ("w", 2, lambda w: np.block([[w.real, -w.imag], [w.imag, w.real]])),
    "real_state": ("z", 1, lambda z: np.concatenate([z.real, z.imag], -1)),
    "real_input": ("v", 2, lambda v: np.concatenate([v.real, v.imag], -2)),
    "complex_matrix": ("r", 2, lambda r: r[..., :2, :3] + 1j * r[..., 2:, :3]),
    "complex_state": ("r", 1, lambda r: r[..., :3] + 1j * r[..., 3:]),
}
each_form = pytest.mark.parametrize("name", FORMS)


def drawn(name, rng, dtype, lead=(2, 1)):
    real = name.startswith("complex")
    return ref.normal(rng, *lead, *((4, 6) if real else (2, 3))[2 - FORMS[name][1] :], dtype=dtype)


@each_form
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_values(name, dtype, seed):
    real = name.startswith("complex")
    if real and is_complex(dtype):
        return
    a = drawn(name, seed, dtype)
    expected = FORMS[name][2](a).astype(np.result_type(dtype, np.complex64) if real else real_of(dtype))
    for found in (getattr(iso, name)(a), getattr(it, name)(tensor(a)).numpy()):
        identical(found, expected)


@each_form
def test_gradients_are_adjoint(name, seed):
    """The products of both sides are equal: <ct, f(a)> = <a_bar, a>, for f is linear over the real numbers."""
    a = drawn(name, seed, np.float64 if name.startswith("complex") else np.complex128)
    x, other = tensor(a).requires_grad_(), tensor(drawn(name, seed, a.dtype))
    out = getattr(it, name)(x)
    ct = torch.randn_like(out)
    (bar,) = torch.autograd.grad(out, x, ct)
    inner = lambda p, q: (p.conj() * q).sum().real
    assert torch.allclose(inner(ct, getattr(it, name)(other)), inner(bar, other), rtol=1e-12)


@each_form
def test_shapes_that_are_refused(name):
    """Too few axes, and an odd size of a real form, whichever axis has it."""
    argument, rank, _ = FORMS[name]
    shapes = [(4,) * (rank - 1)]
    shapes += [(3,), (3, 4), (4, 3)][rank - 1 : 2 * rank - 1] if name.startswith("complex") else []
    for shape in shapes:
        for function, take in ((getattr(iso, name), np.ones), (getattr(it, name), torch.ones)):
            with pytest.raises(ValueError, match=f"^{argument} must"):
                function(take(shape))
