"""`iso.gpu.Array`: what it holds, and that calls on it are those of the CPU."""

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
    yield mesh, mesh
    yield mesh.H @ iso.Dense(draw(rng, 12, 12, dtype=dtype)), None


def close(found, expected, what):
    found = found.download() if type(found) is Array else found
    assert found.shape == expected.shape and found.dtype == expected.dtype
    tolerance.close(found, expected, tolerance.sequence_gradient("float32", 12, 4), what)


@each_kind
def test_operators_on_the_gpu_are_those_of_the_cpu(dtype, seed):
    for op, held in operators(seed, dtype):
        held = held or op
        what, batch = repr(op), op.batch_shape
        x, ct = (draw(seed, *batch[:1], 5, 12, dtype=dtype) for _ in range(2))
        with iso.use_backend("gpu"):
            for name in ("apply", "apply_adjoint"):
                found = getattr(held, name)(Array(x))
                assert type(found) is Array
                close(found, getattr(op, name)(x, backend="cpu"), f"{what}.{name}")
                grads, x_bar = getattr(held, f"{name}_vjp")(Array(x), Array(ct))
                expected, expected_bar = getattr(op, f"{name}_vjp")(x, ct, backend="cpu")
                close(x_bar, expected_bar, f"{what}: x_bar")
                assert grads.keys() == expected.keys()
                for key in expected.keys() - {"operators"}:
                    close(grads[key], expected[key], f"{what}: {key}")
            ct = draw(seed, *batch, 12, 12, dtype=dtype)
            grads, expected = held.matrix_vjp(Array(ct)), op.matrix_vjp(ct, backend="cpu")
            for key in expected.keys() - {"operators"}:
                close(grads[key], expected[key], f"{what}: {key} from W")
            close(held.matrix(), op.matrix(backend="cpu"), f"{what}: W")


@each_kind
@pytest.mark.parametrize("option", ["plain", "lengths", "input"])
def test_recurrences_on_the_gpu_are_those_of_the_cpu(option, dtype, seed):
    x, v, b, h0 = (draw(seed, *shape, dtype=dtype) for shape in ((4, 3, 5), (12, 5), (12,), (3, 12)))
    ct, bias = draw(seed, 4, 3, 12, dtype=dtype), draw(seed, 12)
    setting = {"lengths": {"lengths": [2, 4, 1], "reverse": True}, "input": {"activation_on": "input"}}.get(option, {})
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
    close(bars.pop("transition")["vectors"], expected.pop("transition")["vectors"], "vectors")
    assert bars.keys() == expected.keys()
    for key, bar in expected.items():
        close(bars[key], bar, key)
