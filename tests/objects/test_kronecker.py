"""The Kronecker product against `numpy.kron`: values, gradients, both faces, as a transition, and its refusals."""

import pickle

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from registry import DTYPES, is_complex
from tolerance import TIGHT, close, forward, gradient, identical

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
SIZES = {
    "binary": [(2, 2)] * 6,
    "one": [(5, 4)],
    "rectangular": [(2, 3), (4, 1), (1, 2)],
    "uneven": [(3, 3), (17, 5), (2, 2)],
    "numbers": [(1, 1), (1, 1)],
}
EACH = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def drawn(rng, sizes, dtype):
    return [ref.normal(rng, *size, dtype=dtype) for size in sizes]


def agree(found, expected, dtype, size):
    for got, want in zip(found, expected, strict=True):
        close(got, want if is_complex(dtype) else want.real, gradient(dtype, size), floor=1.0)


@DTYPE
@EACH
def test_values_and_gradients(sizes, dtype, seed):
    factors = drawn(seed, sizes, dtype)
    op, w = iso.Kronecker(factors), ref.kronecker(factors)
    size = max(w.shape)
    assert op.shape == w.shape
    assert op.dtype == dtype
    close(op.matrix(), w, forward(dtype, size))
    x, ct = (ref.normal(seed, 7, n, dtype=dtype) for n in (w.shape[1], w.shape[0]))
    close(op.apply(x), x @ w.T, forward(dtype, size), floor=1.0)
    close(op.apply_adjoint(ct), ct @ w.conj(), forward(dtype, size), floor=1.0)
    grads, x_bar = op.apply_vjp(x, ct)
    close(x_bar, ct @ w.conj(), forward(dtype, size), floor=1.0)
    agree(grads["factors"], ref.kronecker_vjp(ref.wide(ct).T @ x.conj(), factors)["factors"], dtype, size)
    grads, y_bar = op.apply_adjoint_vjp(ct, x)
    close(y_bar, x @ w.T, forward(dtype, size), floor=1.0)
    agree(grads["factors"], ref.kronecker_vjp(ref.wide(ct).T @ x.conj(), factors)["factors"], dtype, size)
    w_bar = ref.normal(seed, *w.shape, dtype=dtype)
    agree(op.matrix_vjp(w_bar)["factors"], ref.kronecker_vjp(w_bar, factors)["factors"], dtype, size)


@DTYPE
def test_threads_and_layouts_change_no_bit(dtype, seed, threads):  # noqa: ARG001  restores the number of threads
    factors, x = drawn(seed, [(2, 2)] * 7, dtype), ref.normal(seed, 300, 128, dtype=dtype)
    results = []
    for count in (1, 2, 3):
        iso.set_num_threads(count)
        op = iso.Kronecker(factors)
        grads, x_bar = op.apply_vjp(x, x[::-1])
        results.append([op.apply(x), x_bar, *grads["factors"]])
    results.append([iso.Kronecker([np.asfortranarray(f) for f in factors]).apply(np.asfortranarray(x))])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=False):
            identical(a, b)


@DTYPE
@pytest.mark.parametrize("side", ["apply", "apply_adjoint", "matrix"])
def test_torch_gives_the_same(side, dtype, seed):
    factors = drawn(seed, [(2, 3), (3, 3), (2, 1)], dtype)
    leaves = [torch.from_numpy(f.copy()).requires_grad_() for f in factors]
    op = it.Kronecker(leaves)
    x = ref.normal(seed, 4, op.shape[side == "apply"], dtype=dtype)
    given = torch.from_numpy(x).requires_grad_()
    out = op.matrix() if side == "matrix" else getattr(op, side)(given)
    ct = ref.normal(seed, *out.shape, dtype=dtype)
    out.backward(torch.from_numpy(ct))
    own = iso.Kronecker(factors)
    if side == "matrix":
        grads = own.matrix_vjp(ct)
    else:
        grads, x_bar = (own.apply_vjp if side == "apply" else own.apply_adjoint_vjp)(x, ct)
        identical(given.grad.numpy(), x_bar)
    for leaf, grad in zip(leaves, grads["factors"], strict=True):
        identical(leaf.grad.numpy(), grad)


def test_the_formula_has_every_derivative():
    draw = lambda *shape: torch.randn(*shape, dtype=torch.complex128, requires_grad=True)
    factors, x = [draw(2, 3), draw(2, 2)], draw(3, 6)
    apply = lambda x, *f: it.Kronecker(f).apply(x)
    assert torch.autograd.gradcheck(apply, (x, *factors))
    assert torch.autograd.gradgradcheck(apply, (x, *factors))
    assert torch.autograd.gradgradcheck(lambda *f: it.Kronecker(f).matrix(), factors)
    values, tangents = torch.func.jvp(lambda *f: it.Kronecker(f).apply(x), tuple(factors), tuple(factors))
    torch.testing.assert_close(tangents, 2 * values)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("sizes", [[2] * 6, [8, 8], [3, 2]], ids=str)
def test_a_recurrence_equals_that_of_its_matrix(sizes, dtype, seed):
    """Step by step, or through the matrix: states and gradients, sequences of several lengths."""
    op = iso.Kronecker([f / np.linalg.norm(f, 2) for f in drawn(seed, [(p, p) for p in sizes], dtype)])
    n = op.shape[0]
    x, v, h0 = (ref.normal(seed, *shape, dtype=dtype) for shape in ((9, 5, 3), (n, 3), (5, n)))
    options = {"h0": h0, "activation": "tanh", "lengths": [9, 4, 7, 1, 9]}
    states = iso.recurrence(op, x, v, **options)
    dense = iso.Dense(op.matrix())
    close(states, iso.recurrence(dense, x, v, **options), TIGHT)
    ct = ref.normal(seed, *states.shape, dtype=dtype)
    grads = iso.recurrence_vjp(op, x, v, states, ct, **options)
    expected = iso.recurrence_vjp(dense, x, v, states, ct, **options)
    wanted = op.matrix_vjp(expected["transition"]["weight"])["factors"]
    for got, want in zip(grads["transition"]["factors"], wanted, strict=True):
        close(got, want, TIGHT)
    for name in ("x", "input_weight", "h0"):
        close(grads[name], expected[name], TIGHT)


def test_factors_of_several_dtypes_promote():
    op = iso.Kronecker([np.eye(2, dtype=np.float32), 1j * np.eye(2)])
    assert op.dtype == np.complex128
    grads, _ = op.apply_vjp(np.ones(4), np.ones(4))
    assert [g.dtype for g in grads["factors"]] == [np.float32, np.complex128]
    assert it.Kronecker([torch.eye(2), torch.eye(2, dtype=torch.complex64)]).dtype == torch.complex64
    with pytest.raises(TypeError, match="same precision"):
        it.Kronecker([torch.eye(2), torch.eye(2, dtype=torch.float64)])


@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
def test_what_is_refused(package):
    give = np.asarray if package is iso else torch.as_tensor
    for shapes in ([], [(2, 2), (2,)], [(2, 0)], [(2, 2, 2), (3, 2, 2)]):
        bad = [give(np.ones(shape)) for shape in shapes]
        with pytest.raises(ValueError, match="factors"):
            package.Kronecker(bad)
    for bad in (None, 3, "ab"):
        with pytest.raises(TypeError, match="^factors must be a sequence"):
            package.Kronecker(bad)
    with pytest.raises(ValueError, match="factor_sizes must multiply up to n = 6"):
        package.Kronecker.random(6, factor_sizes=[2, 2])
    with pytest.raises(ValueError, match="^x must have shape"):
        package.Kronecker([give(np.eye(2))]).apply(give(np.ones(3)))


def test_values_are_checked_in_the_numpy_face():
    with pytest.raises(ValueError, match="^factors must be finite"):
        iso.Kronecker([np.eye(2), np.full((2, 2), np.nan)]).matrix()


@DTYPE
def test_random_ones_are_unitary(dtype, seed):
    op = iso.Kronecker.random(36, rng=seed, dtype=dtype)
    assert [f.shape for f in op.factors] == [(2, 2), (2, 2), (3, 3), (3, 3)]
    assert iso.orthogonality_error(op.matrix()) < 20
    assert it.Kronecker.random(7, dtype=torch.complex64).factors[0].shape == (7, 7)


def test_copies_and_expressions(seed):
    op = iso.Kronecker(drawn(seed, [(2, 3), (2, 2)], np.float64))
    identical(pickle.loads(pickle.dumps(op)).matrix(), op.matrix())
    assert op.astype(np.float32).dtype == np.float32
    close((op.H @ op).matrix(), op.matrix().T @ op.matrix(), TIGHT)
    with pytest.raises(AttributeError):
        op.factors = ()


def test_a_compiled_graph_calls_the_kernel():
    factors, x = [torch.randn(2, 2, requires_grad=True) for _ in range(3)], torch.randn(5, 8)
    apply = lambda f, x: it.Kronecker(f).apply(x)
    compiled = torch.compile(apply, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(factors, x), apply(factors, x))
    grads = [torch.autograd.grad(f(factors, x).square().sum(), factors) for f in (compiled, apply)]
    torch.testing.assert_close(*grads)
