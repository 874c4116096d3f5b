"""Products of plane rotations: identities, pairs of their own in a stack, sizes at the edges of blocks, refusals."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from tolerance import TIGHT, close, eps, forward, gradient, identical

REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
BOTH = pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])


@REAL
@pytest.mark.parametrize(("n", "m", "rows"), [(1, 0, 3), (2, 1, 1), (2, 7, 8), (5, 3, 9), (33, 70, 17), (6, 0, 2)])
def test_values_and_gradients(n, m, rows, dtype, seed):
    op = iso.Givens.random(n, m, dtype=dtype, rng=seed)
    w = ref.givens(op.angles, op.pairs, n)
    close(op.matrix(), w, forward(dtype, n + m))
    x, ct = ref.normal(seed, rows, n, dtype=dtype), ref.normal(seed, rows, n, dtype=dtype)
    close(op.apply(x), x @ w.T, forward(dtype, n + m), floor=1.0)
    close(op.apply_adjoint(x), x @ w, forward(dtype, n + m), floor=1.0)
    expected = ref.givens_vjp(ct.T @ x, op.angles, op.pairs, n)["angles"]
    for (grads, x_bar), own in ((op.apply_vjp(x, ct), ct @ w), (op.apply_adjoint_vjp(ct, x), x @ w.T)):
        close(x_bar, own, forward(dtype, n + m), floor=1.0)
        close(grads["angles"], expected, gradient(dtype, n + m), floor=1.0)
    w_bar = ref.normal(seed, n, n, dtype=dtype)
    expected = ref.givens_vjp(w_bar, op.angles, op.pairs, n)["angles"]
    close(op.matrix_vjp(w_bar)["angles"], expected, gradient(dtype, n + m), floor=1.0)


@BOTH
def test_every_matrix_of_a_stack_has_pairs_of_its_own(package, seed):
    give = np.asarray if package is iso else torch.from_numpy
    angles = seed.uniform(-np.pi, np.pi, 4)
    pairs = np.array([[[0, 1], [2, 0], [1, 2], [0, 1]], [[2, 1], [1, 0], [0, 2], [2, 1]]])
    op = package.Givens(give(angles), give(pairs), n=3)
    assert op.shape == (3, 3)
    assert op.batch_shape == (2,)
    for k in range(2):
        close(np.asarray(op.matrix()[k]), ref.givens(angles, pairs[k], 3), TIGHT)
        close(np.asarray(op[k].matrix()), ref.givens(angles, pairs[k], 3), TIGHT)
    if package is iso:
        w_bar = ref.normal(seed, 2, 3, 3)
        expected = sum(ref.givens_vjp(w_bar[k], angles, pairs[k], 3)["angles"] for k in range(2))
        close(op.matrix_vjp(w_bar)["angles"], expected, TIGHT)


def test_the_order_of_a_pair_is_the_sense_of_its_rotation(seed):
    angles, pairs = seed.uniform(-np.pi, np.pi, 6), iso.Givens.random(5, 6, rng=seed).pairs
    op, swapped = iso.Givens(angles, pairs, n=5), iso.Givens(-angles, pairs[:, ::-1], n=5)
    close(op.matrix(), swapped.matrix(), TIGHT)
    backward = iso.Givens(-angles[::-1], pairs[::-1], n=5)
    close(op.H.matrix(), backward.matrix(), TIGHT)
    assert abs(np.linalg.det(op.matrix()) - 1) < 1e-12


def test_all_pairs_reach_rotations_in_every_direction(seed):
    """The n (n-1)/2 angles of all pairs move W in independent directions."""
    n = 4
    pairs = np.stack(np.triu_indices(n, 1), -1)
    angles, step = seed.uniform(-1, 1, len(pairs)), 1e-6
    matrix = lambda angles: iso.Givens(angles, pairs, n=n).matrix().ravel()
    moves = [(matrix(angles + step * e) - matrix(angles - step * e)) / (2 * step) for e in np.eye(len(pairs))]
    assert np.linalg.matrix_rank(np.array(moves), tol=1e-6) == n * (n - 1) // 2


@REAL
def test_random_ones_are_orthogonal_however_large_their_angles(dtype, seed):
    op = iso.Givens.random(24, 500, dtype=dtype, rng=seed)
    far = iso.Givens((op.angles * 1e4).astype(dtype), op.pairs, n=24)
    for one in (op, far):
        assert iso.orthogonality_error(one.matrix()) < 100
        assert np.abs(np.linalg.det(one.matrix()) - 1) < 2000 * eps(dtype)


@REAL
def test_both_faces_and_every_number_of_threads_give_the_same_bits(dtype, seed, threads):  # noqa: ARG001
    x, ct = (ref.normal(seed, 500, 65, dtype=dtype) for _ in range(2))
    op, results = iso.Givens.random(65, 200, dtype=dtype, rng=seed), []
    for count in (1, 2, 3):
        iso.set_num_threads(count)
        grads, x_bar = op.apply_vjp(x, ct)
        results.append([op.apply(x), x_bar, grads["angles"]])
    angles, rows = (torch.from_numpy(a).requires_grad_() for a in (op.angles, x))
    out = it.Givens(angles, torch.from_numpy(op.pairs), n=65).apply(rows)
    out.backward(torch.from_numpy(ct))
    results.append([a.detach().numpy() for a in (out, rows.grad, angles.grad)])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            identical(a, b)


def test_rows_of_complex_numbers(seed):
    op = iso.Givens.random(6, 9, rng=seed)
    x, ct = (ref.normal(seed, 7, 6, dtype=np.complex128) for _ in range(2))
    close(op.apply(x), x @ op.matrix().T, TIGHT)
    grads, x_bar = op.apply_vjp(x, ct)
    close(x_bar, ct @ op.matrix(), TIGHT)
    close(grads["angles"], ref.givens_vjp((ct.T @ x.conj()).real, op.angles, op.pairs, 6)["angles"], TIGHT)


@pytest.mark.parametrize(("n", "m"), [(16, 4), (6, 100)])  # by rotations, and through the matrix
def test_a_recurrence_equals_that_of_its_matrix(n, m, seed):
    op = iso.Givens.random(n, m, rng=seed)
    x, v, h0 = (ref.normal(seed, *shape) for shape in ((9, 5, 3), (n, 3), (5, n)))
    options = {"h0": h0, "activation": "tanh", "lengths": [9, 4, 7, 1, 9]}
    states, dense = iso.recurrence(op, x, v, **options), iso.Dense(op.matrix())
    close(states, iso.recurrence(dense, x, v, **options), TIGHT)
    ct = ref.normal(seed, *states.shape)
    grads = iso.recurrence_vjp(op, x, v, states, ct, **options)
    expected = iso.recurrence_vjp(dense, x, v, states, ct, **options)
    wanted = op.matrix_vjp(expected["transition"]["weight"])
    close(grads["transition"]["angles"], wanted["angles"], gradient(np.float64, n + m), floor=1.0)
    for name in ("x", "input_weight", "h0"):
        close(grads[name], expected[name], TIGHT)


def test_the_formula_has_every_derivative():
    pairs = torch.tensor([[0, 2], [3, 1], [2, 3], [1, 0]])
    build = lambda angles: it.Givens(angles, pairs, n=4)
    angles, x = torch.randn(4, dtype=torch.float64, requires_grad=True), torch.randn(3, 4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: build(a).apply(x), angles)
    assert torch.autograd.gradgradcheck(lambda a: build(a).apply(x), angles)
    assert torch.autograd.gradgradcheck(lambda a: build(a).matrix(), angles)
    many = torch.randn(5, 4, dtype=torch.float64)
    stack = torch.func.vmap(lambda a: build(a).matrix())(many)
    torch.testing.assert_close(stack, build(many).matrix())


def test_a_compiled_graph_calls_the_kernel():
    angles, x, pairs = torch.randn(3, requires_grad=True), torch.randn(5, 6), torch.tensor([[0, 2], [3, 1], [2, 5]])
    apply = lambda angles, x: it.Givens(angles, pairs, n=6).apply(x)
    compiled = torch.compile(apply, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(angles, x), apply(angles, x))
    grads = [torch.autograd.grad(f(angles, x).square().sum(), angles) for f in (compiled, apply)]
    torch.testing.assert_close(*grads)


@BOTH
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"n": 0}, "^n must be at least 1"),
        ({"n": 3}, r"^pairs must hold two different integers of 0\.\.2 each, got \(1, 3\)"),
        ({"pairs": [[0, -1], [1, 3]]}, r"^pairs must hold two different integers of 0\.\.3 each, got \(0, -1\)"),
        ({"pairs": [[0, 1], [2, 2]]}, r"got \(2, 2\)"),
        ({"pairs": [[0, 1]]}, r"^pairs must have shape \(\*, m, 2\) with m = 2, not \(1, 2\)"),
        ({"pairs": [[0, 1, 2], [1, 2, 3]]}, r"^pairs must have shape \(\*, m, 2\)"),
        ({"angles": np.zeros(())}, r"^angles must have shape \(\*, m\)"),
    ],
)
def test_what_is_refused(package, change, error):
    given = {"angles": np.zeros(2), "pairs": [[0, 1], [1, 3]], "n": 4, **change}
    given["angles"] = given["angles"] if package is iso else torch.from_numpy(given["angles"])
    with pytest.raises(ValueError, match=error):
        package.Givens(**given)


@BOTH
def test_what_is_of_the_wrong_type(package):
    give = np.asarray if package is iso else torch.as_tensor
    with pytest.raises(TypeError, match="^angles must be real"):
        package.Givens(give(np.zeros(1, complex)), [[0, 1]], n=2)
    with pytest.raises(TypeError, match="^pairs must be"):
        package.Givens(give(np.zeros(1)), give([[0.0, 1.0]]), n=2)
    with pytest.raises(TypeError, match="^dtype must be real"):
        package.Givens.random(3, 2, dtype=np.complex128 if package is iso else torch.complex128)
    with pytest.raises(ValueError, match="^m must be 0 with n = 1"):
        package.Givens.random(1, 2)
