"""The recurrent function on both routes, lengths of any integer type, ensembles, a memory; activations alone."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
import tolerance
from faces import tensor
from isometry import _core
from isometry.torch.formulas.activation import activate as formula
from registry import DTYPES, is_complex, real_of
from registry.cells import CELLS, CellCase
from tolerance import close, identical, sequence, sequence_gradient

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
NAMES = pytest.mark.parametrize("name", ref.NAMES)


def units(name, n):
    return {"modrelu": n, "modrelu_realrep": n // 2}.get(name)


# ---------------------------------------------------------------- the two routes


def test_the_plan_chooses_by_the_number_of_reflections():
    for m, route in ((4, "factored"), (256, "dense")):
        vectors = np.ones((256, m), np.float32)
        assert _core.recurrence_route("householder", (vectors, None, None), 100, 20) == route


def test_a_route_is_a_function_of_sizes():
    """No operator is made, nor are values read: these arrays have none."""

    class Sizes:
        def __init__(self, *shape):
            self.shape = shape

    n = 10**15 + 37  # its plan would not fit in memory
    assert _core.recurrence_route("fourier", (Sizes(3, n), Sizes(2, n), Sizes(n)), 100, 20) == "factored"
    mesh = lambda n, layers: (Sizes(n, layers, 1, 0), Sizes(1), None, None, None)
    assert [_core.recurrence_route("mesh", mesh(64, layers), 100, 20) for layers in (2, 60)] == ["factored", "dense"]
    for wrong in ((Sizes(3),), (Sizes(3), None, None)):
        with pytest.raises(ValueError, match="expected an array with the axes of householder"):
            _core.recurrence_route("householder", wrong, 100, 20)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64])
def test_lengths_of_any_integer_type(kind, seed):
    """Small types cannot represent T."""
    u, x, v = ref.normal(seed, 4, 2), ref.normal(seed, 300, 2, 3), ref.normal(seed, 4, 3)
    lengths = np.array([7, 100])
    expected = iso.recurrence(iso.Householder(u), x, v, lengths=lengths)
    identical(iso.recurrence(iso.Householder(u), x, v, lengths=lengths.astype(kind)), expected)
    tensors = (torch.from_numpy(a) for a in (u, x, v))
    op, x, v = it.Householder(next(tensors)), *tensors
    identical(it.recurrence(op, x, v, lengths=torch.from_numpy(lengths.astype(kind))).numpy(), expected)


def test_gradients_survive_a_thousand_steps(seed):
    """For an orthogonal W and the identity the cotangent of the last step reaches h0 with its norm preserved."""
    for op in (iso.Householder.random(16, rng=1), iso.Cayley.random(16, rng=2)):
        x, v, h0 = np.zeros((1000, 1, 2)), np.zeros((16, 2)), ref.normal(seed, 1, 16)
        states = iso.recurrence(op, x, v, h0=h0, activation="identity")
        ct = np.zeros_like(states)
        ct[-1] = ref.normal(seed, 1, 16)
        g = iso.recurrence_vjp(op, x, v, states, ct, h0=h0, activation="identity")
        close(np.linalg.norm(g["h0"]), np.linalg.norm(ct), sequence(np.float64, 1, 1000))
        close(np.linalg.norm(states[-1]), np.linalg.norm(h0), sequence(np.float64, 1, 1000))


# ---------------------------------------------------------------- activations alone


@DTYPE
@pytest.mark.parametrize("name,slope", [*((name, 0.1) for name in ref.NAMES), ("leaky_relu", 0.0)])
def test_numbers_that_are_not_finite(dtype, name, slope):
    """NaN and infinities in either part, beside every other number and in either place of a pair, as defined: of the
    kernels, and of the formula in torch operations."""
    edges = [0.0, -0.0, 1.5, -1.5, np.nan, np.inf, -np.inf]
    both = np.array([(a, b) for a in edges for b in edges])
    if is_complex(dtype):
        if name == "modrelu_realrep":
            return  # of real numbers
        one, ones = (both[:, 0] + 0j).astype(dtype), np.ones(len(both), dtype)
        one.real, one.imag = both.T
        z = np.stack([one, ones, ones, one, one, one[::-1]], -1)
    else:
        z = np.concatenate([both, np.ones_like(both), both[::-1]], -1).astype(dtype)
    ct = (np.arange(1, 7) + (1j * np.arange(2, 8) if is_complex(dtype) else 0)).astype(dtype)
    count = units(name, 6)
    biases = [[-0.5, 0.25, 0.5, -2.0, 1.0, 0.0], [np.nan, -np.inf, -np.inf, np.nan, -np.inf, np.nan]]
    for bias in [None] if count is None else [np.array(b[:count], real_of(dtype)) for b in biases]:
        for row in z:
            agree(row, ct, {"name": name, "bias": bias, "slope": slope})


def agree(z, ct, law):
    """The reference, the kernels of both faces and the formula: values and gradients, NaN where it is NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        expected = [ref.activate(z, **law), *ref.activate_vjp(z, ct=ct, **law)]
    found = [iso.activate(z, **law, check_finite=False), *iso.activate_vjp(z, ct=ct, **law, check_finite=False)]
    x, bias = (None if a is None else torch.from_numpy(a).requires_grad_() for a in (z, law["bias"]))
    given = [t for t in (x, bias) if t is not None]
    outputs = it.activate(x, law["name"], bias=bias, slope=law["slope"]), formula(x, law["name"], bias, law["slope"])
    grads = [torch.autograd.grad(out, given, torch.from_numpy(ct)) for out in outputs]
    for each in (found, *([out.detach(), *g] for out, g in zip(outputs, grads, strict=True))):
        for a, b in zip(each, expected, strict=False):
            assert (b is None) == (a is None)
            if a is not None:
                same(np.asarray(a), b, (z, law))


def same(found, expected, at):
    """Equal numbers, and NaN in the same parts."""
    for a, b in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=0, err_msg=str(at))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tanh_to_the_last_digits(dtype):
    """Small, moderate and saturated arguments of a vectorised tanh."""
    size = np.concatenate([np.logspace(-30, 2, 4001), [0.0, 5.0, 20.0, 300.0]])
    z = np.concatenate([size, -size]).astype(dtype)
    found, exact = iso.activate(z[None], "tanh")[0], np.tanh(z.astype(np.float64))
    scale = np.maximum(np.abs(exact), np.finfo(dtype).tiny)
    worst = np.abs(found - exact) / scale
    assert worst.max() <= sequence(dtype, 1, 0), f"relative error {worst.max():.2e} at {z[worst.argmax()]}"
    assert np.all(np.abs(found) <= 1)


@pytest.mark.parametrize("steps", [1, 40])
def test_a_real_transition_among_complex_arrays(steps):
    """W is formed or not, by the length; its gradient is real."""
    torch.manual_seed(0)
    theta, x = torch.randn(2, 3, dtype=torch.float64), torch.randn(steps, 2, 4, dtype=torch.complex128)
    signs = torch.randn(2, 4, dtype=torch.float64)
    for make, own in ((it.Hadamard, signs), (lambda t: it.Mesh(t.flatten(), n=4, layers=4), theta)):
        own = own.clone().requires_grad_()
        v = torch.randn(4, 4, dtype=torch.complex128)
        by_kernel = it.recurrence(make(own), x, v, activation="identity")
        by_matrix = it.recurrence(it.Dense(make(own).matrix().to(x.dtype)), x, v, activation="identity")
        assert (by_kernel - by_matrix).abs().max() < 1e-12
        ct = torch.randn_like(by_kernel)
        one, other = (torch.autograd.grad(states, own, ct)[0] for states in (by_kernel, by_matrix))
        assert one.dtype is torch.float64 and (one - other).abs().max() < 1e-10


MEMBERS, STEPS, BATCH, N, FEATURES = 3, 5, 4, 6, 2


def test_a_stack_of_any_operator(seed):
    """A product of stacks has no kernel of its own: its matrices serve."""
    u, a = 0.5 * ref.normal(seed, MEMBERS, N, 2), ref.normal(seed, MEMBERS, N * (N - 1) // 2)
    x, v = ref.normal(seed, STEPS, MEMBERS, BATCH, FEATURES), ref.normal(seed, N, FEATURES)
    for api, take in ((iso, np.asarray), (it, torch.from_numpy)):
        op = api.Householder(take(u)) @ api.Cayley(take(a))
        states = api.recurrence(op, take(x), take(v))
        for i in range(MEMBERS):
            one = api.recurrence(op[i], take(np.ascontiguousarray(x[:, i])), take(v))
            tolerance.close(states[:, i], one, tolerance.sequence("float64", N, STEPS))


def test_one_member_of_one(seed):
    u, x, v = ref.normal(seed, 1, N, 2), ref.normal(seed, STEPS, 1, 1, FEATURES), ref.normal(seed, 1, N, FEATURES)
    states = iso.recurrence(iso.Householder(u), x, v)
    np.testing.assert_array_equal(states[:, 0], iso.recurrence(iso.Householder(u[0]), x[:, 0], v[0]))


def test_states_of_other_arguments_are_refused(seed):
    a, x = 0.5 * ref.normal(seed, MEMBERS, N * (N - 1) // 2), ref.normal(seed, STEPS, MEMBERS, BATCH, FEATURES)
    arrays = iso.Cayley(a), x, ref.normal(seed, N, FEATURES)
    states = iso.recurrence(*arrays)
    states[:, 1] += 1
    with pytest.raises(ValueError, match="states must be"):
        iso.recurrence_vjp(*arrays, states, states)


FACES = pytest.mark.parametrize(("api", "take"), [(iso, np.asarray), (it, torch.from_numpy)], ids=["numpy", "torch"])
WRONG = {
    "x for one": ({"x": (STEPS, BATCH, FEATURES)}, "transition must be one operator"),
    "two batch axes": ({"vectors": (2, MEMBERS, N, 1)}, "transition must be one operator"),
    "x of other members": ({"x": (STEPS, 2, BATCH, FEATURES)}, r"x must have shape \(T, E, B, d\)"),
    "x with another axis": ({"x": (STEPS, MEMBERS, BATCH, FEATURES, 1)}, r"x must have shape \(T, E, B, d\)"),
    "input_weight": ({"input_weight": (2, N, FEATURES)}, "input_weight must have 2 axes"),
    "h0": ({"h0": (2, BATCH, N)}, "h0 must have 2 axes"),
    "rows of h0": ({"h0": (MEMBERS, 3, N)}, "h0 must have shape"),
    "bias": ({"bias": (MEMBERS, N + 1)}, "bias must have shape"),
}


@FACES
@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes(api, take, mistake):
    """A message names the argument and the members."""
    shapes = {"vectors": (MEMBERS, N, 1), "x": (STEPS, MEMBERS, BATCH, FEATURES), "input_weight": (N, FEATURES)}
    wrong, message = WRONG[mistake]
    arrays = {key: take(np.ones(shape)) for key, shape in {**shapes, **wrong}.items()}
    with pytest.raises(ValueError, match=message):
        api.recurrence(api.Householder(arrays.pop("vectors")), **arrays)


def test_the_extension_checks_what_memory_safety_needs():
    """Wrong numbers of members, shapes and lengths never reach the kernels."""
    x, v, u = np.ones((2, 3, 2, 1)), np.ones((1, 4, 1)), np.ones((2, 4, 1))
    right = {"x": x, "v": v, "h0": None, "b": None, "own": None}

    def run(members=2, u=u, out=(2, 3, 2, 4), phi="tanh", ends=None, starts=(None, None), **wrong):
        arrays, (marks, state) = (right | wrong).values(), starts
        law, steps, results = (phi, 0.1, (False,)), (ends, False, marks), (np.empty(out), None, None)
        transition = "householder", (u, None, None)
        _core.sequence("recurrence", transition, (*arrays, state), law, steps, results, 2, None, members)

    run()
    for wrong in (
        {"members": 3},
        {"members": 3, "out": (3, 3, 2, 4)},
        {"u": np.ones((1, 4, 1))},
        {"u": np.ones((4, 1))},
        {"out": (1, 3, 2, 4)},
        {"x": np.ones((3, 2, 1))},
        {"v": np.ones((3, 4, 1))},
        {"h0": np.ones((2, 4))},
        {"b": np.ones((2, 3))},
        {"ends": np.array([1, 1, 1])},
        {"starts": (np.zeros((3, 3, 2), np.int64), None)},
        {"starts": (np.zeros((2, 2, 2), np.int64), None)},
        {"starts": (np.zeros((1, 3, 2), np.int64), np.zeros((1, 2, 3)))},
        {"ends": np.array([1, 3])},
        {"ends": np.array([4, 1])},
        {"phi": "modrelu", "own": np.ones((2, 3))},
    ):
        with pytest.raises(ValueError):
            run(**wrong)


def test_what_is_not_served_says_so():
    with pytest.raises(NotImplementedError, match="starts"):
        x, marks = np.ones((9, 2, 3)), np.zeros((9, 2), bool)
        iso.recurrence(iso.Cayley(np.ones(15)), x, np.ones((6, 3)), starts=marks, backend="gpu")
    with pytest.raises(ValueError, match="checkpoint must be 'none' for an ensemble, not 'sqrt'"):
        it.recurrence(it.Cayley(torch.zeros(2, 15)), torch.zeros(3, 1, 1, 2), torch.zeros(6, 2), checkpoint="sqrt")


def test_the_memory_of_a_rum_has_a_cotangent(seed):
    """With lam 1 states and cotangents are pairs; the states alone are enough. The gradients are the torch face's."""
    arrays = CellCase(CELLS["rum"], "rotations").draw(seed, steps=7, batch=3)
    found = iso.rum(**arrays, lam=1)
    ct = np.cos(np.arange(found[0].size)).reshape(found[0].shape), np.ones_like(found[1])
    pull = lambda states, ct: iso.rum_vjp(**arrays, states=states, ct=ct, lam=1)
    leaves = {name: tensor(a).requires_grad_() for name, a in arrays.items()}
    results = it.rum(**leaves, lam=1)
    for cts, grads in ((ct, (pull(found, ct), pull(found[0], ct))), ((ct[0], 0 * ct[1]), (pull(found[0], ct[0]),))):
        expected = torch.autograd.grad(results, list(leaves.values()), [tensor(c) for c in cts], retain_graph=True)
        for own in grads:
            for name, g in zip(leaves, expected, strict=True):
                close(own[name], g, sequence_gradient(np.float64, 4, 7) * 25, name)
