"""`iso.gpu.Array`: what it holds, and that calls on it are those of the CPU."""

import doctest
import importlib
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import isometry as iso
import tolerance
from isometry.gpu import Array

KINDS = {"real": np.float32, "complex": np.complex64}
each_kind = pytest.mark.parametrize("dtype", KINDS.values(), ids=KINDS)


def draw(rng, *shape, dtype=np.float32):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype == np.complex64 else a).astype(dtype)


@each_kind
@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 3, 4)])
def test_what_goes_up_comes_down(shape, dtype, seed):
    a = draw(seed, *shape, dtype=dtype)
    held = Array(a)
    assert (held.shape, held.dtype, held.ndim, held.size) == (shape, a.dtype, len(shape), a.size)
    assert held.download().dtype == dtype
    np.testing.assert_array_equal(held.download(), a)
    np.testing.assert_array_equal(Array.upload(a).reshape(a.size).download(), a.reshape(-1))


def test_numbers_become_single():
    assert Array([1, 2]).dtype == np.float32
    assert Array(np.ones(2)).dtype == np.float32
    assert Array(np.ones(2, np.complex128)).dtype == np.complex64
    assert repr(Array(np.ones((2, 3)))) == "Array(shape=(2, 3), dtype=float32)"
    assert Array(np.ones((4, 6))[::2, ::3].T).download().shape == (2, 2)
    with pytest.raises(TypeError, match="array"):
        Array(["one"])


def test_the_cpu_refuses_them():
    x = Array(np.ones(4))
    for call in (
        lambda: np.asarray(x),
        lambda: iso.Dense(np.eye(4))(x),
        lambda: iso.Dense(Array(np.eye(4)))(np.ones(4)),
        lambda: iso.Householder(Array(np.ones((4, 2)))).matrix(),
        lambda: iso.orthogonality_error(Array(np.eye(4))),
    ):
        with pytest.raises(TypeError, match="in the memory of the GPU"):
            call()


def test_nothing_is_broadcast():
    op = iso.Dense(np.ones((2, 3, 3), np.float32))
    for shape in ((3,), (5, 2, 3)):
        with pytest.raises(ValueError, match="nothing is broadcast or transposed"):
            op.apply(Array(np.ones(shape)), backend="gpu")
    with pytest.raises(ValueError, match="x must have shape"):
        iso.Dense(np.eye(3, dtype=np.float32)).apply(Array(np.ones((5, 4))), backend="gpu")
    with pytest.raises(TypeError, match="complex64"):
        iso.Dense(np.eye(3, dtype=np.complex64)).apply(Array(np.ones((5, 3))), backend="gpu")


def operators(rng, dtype):
    """Of arrays of the CPU, and the same of arrays of the GPU where the object has kernels."""
    # a stack of two, each for rows of its own
    vectors, upper = draw(rng, 2, 1, 12, 4, dtype=dtype), draw(rng, 2, 1, 66, dtype=dtype) / 8
    phases, signs = draw(rng, 2, 1, 12), np.sign(draw(rng, 2, 1, 12))
    last = {"phases": phases} if dtype == np.complex64 else {}
    sign = {"phases": phases} if dtype == np.complex64 else {"sign": np.float32([[0.5], [-1]])}
    yield iso.Householder(vectors), iso.Householder(Array(vectors))
    yield iso.Householder(vectors, **sign), iso.Householder(Array(vectors), **{k: Array(a) for k, a in sign.items()})
    yield iso.Cayley(upper, **last), iso.Cayley(Array(upper), **{k: Array(a) for k, a in last.items()})
    yield iso.Cayley(upper, signs=signs), iso.Cayley(Array(upper), signs=Array(signs))
    mesh = iso.Mesh.random(12, layers=3, rng=1, dtype=dtype)
    own = {key: getattr(mesh, key) for key in ("theta", "phi", "phases", "signs")}
    yield mesh, iso.Mesh(n=12, layers=3, **{key: None if a is None else Array(a) for key, a in own.items()})
    yield iso.Householder(vectors).H, iso.Householder(Array(vectors)).H
    weight, one = draw(rng, 12, 12, dtype=dtype), iso.Householder(vectors[0, 0])
    yield mesh.H @ iso.Dense(weight) @ one, mesh.H @ iso.Dense(Array(weight)) @ one
    yield (mesh @ one).H, (mesh @ iso.Householder(Array(vectors[0, 0]))).H


def close(found, expected, what):
    """Arrays, or dicts and lists of them."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), what
        for key, value in expected.items():
            close(found[key], value, f"{what}: {key}")
        return
    if isinstance(expected, list):
        for k, (one, value) in enumerate(zip(found, expected, strict=True)):
            close(one, value, f"{what}[{k}]")
        return
    if expected is None:
        assert found is None
        return
    assert type(found) is Array and found.shape == expected.shape and found.dtype == expected.dtype, what
    tolerance.close(found.download(), expected, tolerance.sequence_gradient("float32", 12, 4), what)


@each_kind
def test_operators_on_the_gpu_are_those_of_the_cpu(dtype, seed):
    for op, held in operators(seed, dtype):
        what, batch = repr(op), op.batch_shape
        x, ct = (draw(seed, *batch[:1], 5, 12, dtype=dtype) for _ in range(2))
        with iso.use_backend("gpu"):
            for name in ("apply", "apply_adjoint"):
                found = getattr(held, name)(Array(x))
                close(found, getattr(op, name)(x, backend="cpu"), f"{what}.{name}")
                grads, x_bar = getattr(held, f"{name}_vjp")(Array(x), Array(ct))
                expected, expected_bar = getattr(op, f"{name}_vjp")(x, ct, backend="cpu")
                close(x_bar, expected_bar, f"{what}: x_bar")
                close(grads, expected, what)
            ct = draw(seed, *batch, 12, 12, dtype=dtype)
            close(held.matrix_vjp(Array(ct)), op.matrix_vjp(ct, backend="cpu"), f"{what} from W")
            close(held.matrix(), op.matrix(backend="cpu"), f"{what}: W")


@each_kind
@pytest.mark.parametrize("option", ["plain", "lengths", "input"])
def test_recurrences_on_the_gpu_are_those_of_the_cpu(option, dtype, seed):
    x, v, b, h0 = (draw(seed, *shape, dtype=dtype) for shape in ((4, 3, 5), (12, 5), (12,), (3, 12)))
    ct, bias = draw(seed, 4, 3, 12, dtype=dtype), draw(seed, 12)
    setting = {"lengths": {"lengths": [2, 4, 0], "reverse": True}, "input": {"activation_on": "input"}}.get(option, {})
    setting |= {"activation": "modrelu"}
    vectors = draw(seed, 12, 4, dtype=dtype)
    op, held = iso.Householder(vectors), iso.Householder(Array(vectors))
    given = {"h0": h0, "bias": b, "activation_bias": bias}
    states = iso.recurrence(op, x, v, **given, **setting)
    expected = iso.recurrence_vjp(op, x, v, states, ct, **given, **setting)
    on_gpu = {key: Array(a) for key, a in given.items()}
    with iso.use_backend("gpu"):
        found = iso.recurrence(held, Array(x), Array(v), **on_gpu, **setting)
        close(found, states, "states")
        bars = iso.recurrence_vjp(held, Array(x), v, found, Array(ct), **on_gpu, **setting)
    close(bars, expected, option)


@pytest.mark.parametrize("reset", ["before", "after"])
def test_gated_units_on_the_gpu_are_those_of_the_cpu(reset, seed):
    shapes = {"x": (4, 3, 5), "w": (3, 12, 12), "u": (3, 12, 5), "b": (3, 12), "h0": (3, 12)}
    given = {name: draw(seed, *shape) / 2 for name, shape in shapes.items()}
    given |= {"hidden_bias": draw(seed, 12)} if reset == "after" else {}
    setting, ct = {"reset": reset, "lengths": [2, 4, 0], "reverse": True}, draw(seed, 4, 3, 12)
    states = iso.gru(**given, **setting)
    expected = iso.gru_vjp(**given, states=states, ct=ct, **setting)
    held = {name: Array(a) if name != "u" else a for name, a in given.items()}
    with iso.use_backend("gpu"):
        found = iso.gru(**held, **setting)
        close(found, states, "states")
        close(iso.gru_vjp(**held, states=found, ct=ct, **setting), expected, reset)
        with pytest.raises(TypeError, match="memory of the GPU"):
            iso.lstm(Array(given["x"]), draw(seed, 4, 12, 12), draw(seed, 4, 12, 5))


def test_numpy_arrays_among_them_keep_their_form(seed):
    """Gradients of NumPy arrays in their own shape and field, as on the CPU."""
    op = iso.Cayley(draw(seed, 66, dtype=np.complex64) / 8)
    x, ct = draw(seed, 5, 12), draw(seed, 5, 12, dtype=np.complex64)
    with iso.use_backend("gpu"):
        close(op(Array(x + 0j * x)), op.apply(x, backend="cpu"), "y")
        found, expected = op.apply_vjp(x, Array(ct)), op.apply_vjp(x, ct, backend="cpu")
        close(list(found), list(expected), "of real x")
        x, v, ct = draw(seed, 4, 3, 5), draw(seed, 12, 5), draw(seed, 4, 3, 12, dtype=np.complex64)
        given = {"h0": draw(seed, 12), "bias": draw(seed, 12), "activation": "identity"}
        states = iso.recurrence(op, x, v, **given, backend="cpu")
        close(iso.recurrence(op, x, Array(v + 0j * v), **given), states, "states")
        bars = iso.recurrence_vjp(op, x, v, Array(states), ct, **given)
        close(bars, iso.recurrence_vjp(op, x, v, states, ct, **given, backend="cpu"), "recurrence")


@each_kind
@pytest.mark.parametrize("activation", ["tanh", "leaky_relu", "oplu", "modrelu"])
def test_activations_are_those_of_the_cpu(activation, dtype, seed):
    z, ct = (draw(seed, 5, 3, 12, dtype=dtype) for _ in range(2))
    bias = draw(seed, 12) / 4 if activation == "modrelu" else None
    expected = iso.activate(z, activation, bias=bias), *iso.activate_vjp(z, activation, ct, bias=bias)
    for given in (Array(z), ct, bias), (Array(z), Array(ct), None if bias is None else Array(bias)):
        with iso.use_backend("gpu"):
            found = iso.activate(given[0], activation, bias=given[2])
            bars = iso.activate_vjp(given[0], activation, given[1], bias=given[2])
        close([found, *bars], list(expected), activation)


def test_arguments_of_activations_are_checked(seed):
    z, bad = Array(draw(seed, 2, 5)), np.full(5, np.nan, np.float32)
    with iso.use_backend("gpu"):
        for error, match, call in (
            (ValueError, "activation|name", lambda: iso.activate(z, "none")),
            (ValueError, "even|pairs", lambda: iso.activate(z, "oplu")),
            (ValueError, "bias", lambda: iso.activate(z, "modrelu")),
            (ValueError, "bias .*NaN", lambda: iso.activate(z, "modrelu", bias=bad)),
            (TypeError, "bias", lambda: iso.activate(z, "modrelu", bias=np.ones(5, np.complex64))),
            (ValueError, "ct", lambda: iso.activate_vjp(z, "tanh", Array(draw(seed, 5)))),
            (TypeError, "float64", lambda: iso.activate_vjp(z, "tanh", np.ones((2, 5)))),
        ):
            with pytest.raises(error, match=match):
                call()
    with pytest.raises(TypeError, match="in the memory of the GPU"):
        iso.activate(z, "tanh")


@each_kind
def test_the_hadamard_transform_is_that_of_the_cpu(dtype, seed):
    for n in (1, 8, 12, 48, 2048):
        x = draw(seed, 3, n, dtype=dtype)
        with iso.use_backend("gpu"):
            found = iso.hadamard_transform(Array(x), 0.5)
        close(found, iso.hadamard_transform(x, 0.5), f"{n}")
    with iso.use_backend("gpu"), pytest.raises(ValueError, match="order"):
        iso.hadamard_transform(Array(draw(seed, 3, 6)))


def test_what_would_lose_digits_is_refused(seed):
    x = Array(draw(seed, 5, 12))
    real, wide = iso.Householder(Array(draw(seed, 12, 4))), iso.Householder(seed.standard_normal((12, 4)))
    single = iso.Householder(draw(seed, 12, 4))
    complex_ = draw(seed, 5, 12, dtype=np.complex64)
    with iso.use_backend("gpu"):
        for call in (
            lambda: wide(x),
            lambda: real(np.ones((5, 12))),
            lambda: real.apply_vjp(x, np.ones((5, 12))),
            lambda: single.matrix_vjp(Array(np.eye(12))) and wide.matrix_vjp(Array(np.eye(12))),
            lambda: iso.recurrence(real, np.ones((4, 3, 2)), np.ones((12, 2))),
            lambda: iso.recurrence(single, Array(np.ones((4, 3, 2))), np.ones((12, 2))),
        ):
            with pytest.raises(TypeError, match="float64; the GPU computes in float32 and complex64"):
                call()
        with pytest.raises(
            TypeError, match="vectors must be of complex64, not float32: on the GPU nothing is converted"
        ):
            real(complex_)
        with pytest.raises(TypeError, match="ct"):
            real.apply_vjp(x, complex_)
        tolerance.close(
            single(Array(complex_)).download(), single.apply(complex_, backend="cpu"),
            tolerance.sequence_gradient("float32", 4, 1), "complex rows of a real operator",
        )  # fmt: skip


def test_nothing_of_an_ndarray_reads_them():
    x = Array(np.ones((3, 4)))
    for call in (lambda: x.T, lambda: x.real, lambda: x[0], lambda: x.astype(float), lambda: iso.Dense(np.eye(3)) @ x):
        with pytest.raises(TypeError, match="in the memory of the GPU"):
            call()
    with pytest.raises(AttributeError, match="'Array' object has no attribute 'name'"):
        x.name
    assert not hasattr(x, "no_such")
    stack = iso.Dense(Array(np.ones((2, 3, 3))))
    for call in (lambda: stack[0], lambda: stack.astype(np.float64)):
        with pytest.raises(TypeError, match="in the memory of the GPU"):
            call()
    again = pickle.loads(pickle.dumps(stack))
    assert type(again.weight) is Array and np.array_equal(again.weight.download(), stack.weight.download())


def test_threads_may_call_at_once(seed):
    op, rows = iso.Cayley(Array(draw(seed, 66) / 8)), [draw(seed, 7, 12) for _ in range(16)]
    expected = [iso.Cayley(op.upper.download())(x) for x in rows]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: op.apply(x, backend="gpu").download(), rows))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@each_kind
def test_sums_and_multiples(dtype, seed):
    x, y = (draw(seed, 3, 4, dtype=dtype) for _ in range(2))
    a, b = Array(x), Array(y)
    factors = [2, -0.5, np.float32(3), True] + ([1j, np.complex64(1 - 2j)] if dtype == np.complex64 else [])
    found = {"a + b": a + b, "a - b": a - b, "a + y": a + y, "x + b": x + b, "x - b": x - b, "a - y": a - y, "-a": -a}
    expected = dict(zip(found, (x + y, x - y, x + y, x + y, x - y, x - y, -x), strict=True))
    for factor in factors:
        found |= {f"a {factor}": a * factor, f"{factor} a": factor * a, f"a / {factor}": a / factor}
        expected |= {f"a {factor}": x * factor, f"{factor} a": x * factor, f"a / {factor}": x / factor}
    for what, value in found.items():
        assert type(value) is Array and value.dtype == dtype and value.shape == (3, 4), what
        np.testing.assert_allclose(value.download(), expected[what], rtol=1e-6, atol=1e-6, err_msg=what)


def test_sums_and_multiples_that_do_not_fit():
    a = Array(np.ones((3, 4)))
    for error, match, call in (
        (TypeError, "float32 and complex64", lambda: a + Array(np.ones((3, 4)) * 1j)),
        (TypeError, "float32 and float64", lambda: np.ones((3, 4)) - a),
        (ValueError, "must have shape", lambda: a - Array(np.ones(4))),
        (TypeError, "must be real", lambda: a * 1j),
        (TypeError, "unsupported operand", lambda: a + 1),
        (TypeError, "unsupported operand", lambda: a * a),
        (TypeError, "unsupported operand", lambda: a / a),
        (TypeError, "unsupported operand", lambda: 1 / a),
        (TypeError, "ufunc|implement", lambda: np.add(a, a)),
    ):
        with pytest.raises(error, match=match):
            call()
    with pytest.raises(ZeroDivisionError):
        a / 0


def test_the_example_of_its_docstring():
    assert doctest.testmod(importlib.import_module("isometry.gpu._array")) == (0, 5)
