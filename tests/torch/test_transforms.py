"""Operators and activations in every differentiation mode of torch: orders, directions, batches, large norms."""

import math

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad
from torch.func import jvp, vjp
from torch.utils.checkpoint import checkpoint

import isometry as iso
import isometry.torch as it
import reference as ref
import tolerance
from derivatives import (
    TRANSFORMS,
    draw,
    every_member,
    every_order,
    gradients,
    leaves,
    of_operator,
    same,
    same_when_compiled,
    score,
)
from faces import tensor
from registry import CASES, DTYPES, is_complex, real_of
from tolerance import UNITARITY, close, forward, gradient, identical

DOUBLE = [case for case in CASES if real_of(case.dtype) is np.float64]
REAL = [case for case in DOUBLE if case.first and case.dtype is np.float64]
# For slow calls (half a second): of each object the last variant of either field, the others in the long run.
LAST = {(case.stem, case.dtype): case for case in DOUBLE}.values()
each_last_operator = pytest.mark.parametrize(
    "operator", [case if case in LAST else pytest.param(case, marks=pytest.mark.long) for case in DOUBLE], ids=str
)
#: What is called with an operator and rows, how many, and the axis of W of which they are.
CALLS = {
    "matrix": (lambda op, _: op.matrix(), 0, 1),
    "apply": (lambda op, x: op.apply(x), 2, 1),
    "apply_adjoint": (lambda op, x: op.apply_adjoint(x), 2, 0),
    "det": (lambda op, _: op.det().unsqueeze(-1), 0, 1),
}
each_call = pytest.mark.parametrize(
    ("operator", "call"), [(case, call) for case in DOUBLE for call in CALLS if call != "det" or case.square], ids=str
)
each_transform = pytest.mark.parametrize("transform", TRANSFORMS)


def problem(case, call, rng):
    """One method of an operator as a function of the operator's arguments and of x, and a point to differentiate at."""
    return of_operator(case, rng, *CALLS[call])


def of_the_first(f, at, rows=0):
    """The same as a function of the first argument, and of the rows, the other arguments fixed."""
    first, *others = at[: len(at) - rows]
    return lambda t, *x: f(t, *others, *x), [first, *at[len(at) - rows :]]


@pytest.fixture
def rows(seed):
    """Rows through three reflections, as a function of the vectors and the rows, and a point."""
    return lambda u, x: it.Householder(u).apply(x), [draw(seed, 5, 3), draw(seed, 2, 5)]


# ---------------------------------------------------------------- operators


@each_call
def test_first_and_second_derivatives(operator, call, seed):
    """Reverse, forward, batched, reverse over reverse and forward over reverse, against differences."""
    every_order(*problem(operator, call, seed))


@each_call
def test_vmap_equals_a_loop(operator, call, seed):
    """Over every argument alone, and over all of them."""
    every_member(*problem(operator, call, seed))


def test_a_dual_cotangent_of_a_graph_made_before(rows, seed):
    """The backward pass is linear in its cotangent, also if that carries a tangent unknown to the forward pass."""
    f, at = rows
    u, x = leaves(at)
    y, way = f(u, x), draw(seed, 2, 5)
    (expected,) = torch.autograd.grad(y, u, way, retain_graph=True)
    with forward_ad.dual_level():
        (found,) = torch.autograd.grad(y, u, forward_ad.make_dual(draw(seed, 2, 5), way))
        same(forward_ad.unpack_dual(found).tangent, expected)


def test_one_argument_may_depend_on_another(seed):
    """Second derivatives are partial inside the operation, total for the caller."""
    ones = torch.ones(4, 4, dtype=torch.float64)
    every_order(lambda u: it.Householder(u).apply(u.mT @ ones), [draw(seed, 4, 3)])


def test_an_argument_changed_in_place_is_noticed(rows):
    """Backward raises if an argument was changed after the forward pass."""
    f, at = rows
    u, x = leaves(at)
    moved = x.detach()
    y = f(u, moved)
    moved.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


@pytest.mark.parametrize("use_reentrant", [False, True], ids=["saved tensors", "reentrant"])
def test_checkpointing(rows, use_reentrant):
    """A recomputed forward pass gives the same gradients."""
    f, at = rows
    found = leaves(at)
    score(checkpoint(f, *found, use_reentrant=use_reentrant)).backward()
    same([t.grad for t in found], gradients(f, at))


def test_nothing_is_recorded_without_grad(rows):
    """no_grad and inference_mode record no graph."""
    f, at = rows
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert f(*leaves(at)).grad_fn is None


# ---------------------------------------------------------------- operators, compiled


def in_one_piece(f):
    torch.compiler.reset()
    return torch.compile(f, backend="aot_eager", fullgraph=True)


@each_transform
@pytest.mark.slow
def test_a_compiled_transform(transform, seed):
    """No graph break for a transform inside the compiled function. One graph of all operators takes less time."""
    problems = [of_the_first(*problem(operator, "apply", seed), 1) for operator in REAL]
    of_rows = lambda f, x: lambda at: score(f(at, x))
    whole = lambda *ats: [
        TRANSFORMS[transform](of_rows(f, x), at) for (f, (_, x)), at in zip(problems, ats, strict=True)
    ]
    at = [first for _, (first, _) in problems]
    for operator, found, expected in zip(REAL, in_one_piece(whole)(*at), whole(*at), strict=True):
        same(found, expected, str(operator))


@pytest.mark.parametrize("operator", [case for case in REAL if case.square], ids=str)
def test_compiled_determinants(operator, seed):
    same_when_compiled(*problem(operator, "det", seed))


@each_last_operator
def test_compiled_for_any_number_of_operators(operator, seed):
    """The last batch of an epoch is smaller: the compiler then treats the sizes as symbolic."""
    more = operator.options(4)
    build = lambda **given: operator.object.build(it, {**given, **more})
    fast = in_one_piece(lambda at, x: build(**at).apply(x))
    for size in (5, 3, 2):
        at = {name: tensor(a) for name, a in operator.draw(seed, 4, (size,)).items()}
        x = draw(seed, size, build(**at).shape[1])
        same(fast(at, x), build(**at).apply(x))


def test_compiled_for_any_size(seed):
    fast = in_one_piece(lambda u: it.Cayley(u).matrix())
    for n in (3, 4, 5):
        u = draw(seed, n * (n - 1) // 2)
        same(fast(u), it.Cayley(u).matrix())


# ---------------------------------------------------------------- activations


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-12, 1e-30])
@pytest.mark.parametrize("name", ["modrelu", "modrelu_realrep"])
def test_modrelu_of_small_numbers_by_formula(name, size, seed):
    """b_bar = sum Re(conj(e) f_bar), e = z / |z|, is well conditioned for every |z|; z_bar only grows like b /
    |z|."""
    z, ct = ((s * ref.normal(seed, 6, 5, dtype=np.complex64)).astype(np.complex64) for s in (size, 1))
    if name == "modrelu_realrep":
        z, ct = ref.as_real(z), ref.as_real(ct)
    bias = np.full(5, 2, np.float32)
    expected, expected_bias = ref.activate_vjp(z, name, ct, bias)
    f = lambda z, bias: it.activate(z, name, bias=bias)
    value, pull = vjp(f, tensor(z), tensor(bias))
    bound = tolerance.sequence_gradient(np.float32, 6, 0)
    tolerance.close(value, ref.activate(z, name, bias), bound, "value")
    for found in (pull(tensor(ct)), gradient_in_a_graph(f, tensor(z), tensor(bias), tensor(ct))):
        tolerance.close(found[0].detach(), expected, bound, "z_bar")
        tolerance.close(found[1].detach(), expected_bias, bound, "b_bar", tolerance.FLOOR * np.linalg.norm(ct))
    # Forward mode is the adjoint: along b the value moves by e.
    moved = jvp(lambda bias: f(tensor(z), bias), (tensor(bias),), (torch.ones(5),))[1]
    unit = ref.activate(z, name, bias) - ref.wide(z)
    tolerance.close(moved, unit / 2, bound, "tangent of the bias")


def gradient_in_a_graph(f, z, bias, ct):
    at = leaves([z, bias])
    return torch.autograd.grad(f(*at), at, ct, create_graph=True)


@pytest.mark.parametrize(
    "program", [lambda op, x: op.apply(x), lambda op, x: op.matrix() @ x.mT], ids=["apply", "matrix"]
)
def test_a_compiled_graph_calls_the_kernels(program, request):
    """An operator is one operation of the graph, not its formula."""
    found = []

    def backend(graph, _inputs):
        found.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    upper, x = torch.randn(28), torch.randn(3, 8)
    compiled = torch.compile(lambda a, x: program(it.Cayley(a), x), backend=backend, fullgraph=True)
    same(compiled(upper, x), program(it.Cayley(upper), x))
    assert any(f"isometry.{request.node.callspec.id}" in target for target in found), found


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
