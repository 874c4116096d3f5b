"""W is orthogonal, methods are those of the dense form, gradients those of formulas and differences."""

import numpy as np
import pytest

import reference as ref
from registry import members, real_of
from tolerance import DIFFERENCES, UNITARITY, close, forward, gradient


def vjp(subject, rng):
    """Against the reference's formulas."""
    w, tolerance = subject.reference(), gradient(subject.dtype, subject.factors)
    x = ref.normal(rng, 3, *subject.batch_shape, w.shape[-1], dtype=subject.dtype)
    ct = ref.normal(rng, 3, *subject.batch_shape, w.shape[-2], dtype=subject.dtype)
    (grads, x_bar), (expected, expected_x) = subject.apply_vjp(x, ct), subject.reference_apply_vjp(x, ct)
    close(x_bar, expected_x, tolerance, "x_bar")
    agree(subject, grads, expected, tolerance, subject.floor(ct))
    ct = ref.normal(rng, *w.shape, dtype=subject.dtype)
    agree(subject, subject.matrix_vjp(ct), subject.reference_matrix_vjp(ct), tolerance, subject.floor(ct))


def agree(subject, grads, expected, tolerance, floor):
    assert set(grads) == set(expected), "one gradient per trainable argument"
    for name, g in grads.items():
        assert np.asarray(g).dtype == subject.arguments[name].dtype, f"gradient of {name} is {np.asarray(g).dtype}"
        close(g, expected[name], tolerance, f"gradient of {name}", floor)


def differences(subject, rng):
    """Against five-point differences of the operator itself; for float64 and complex128."""
    n_out, n_in = subject.reference().shape[-2:]
    x = ref.normal(rng, 2, *subject.batch_shape, n_in, dtype=subject.dtype)
    ct = ref.normal(rng, 2, *subject.batch_shape, n_out, dtype=subject.dtype)
    grads, _ = subject.apply_vjp(x, ct)
    for name in grads:
        at = subject.arguments[name]
        way = ref.normal(rng, *at.shape, dtype=at.dtype)
        at = np.clip(at, -0.9, 0.9) if name == "sign" else at
        moved = lambda t, name=name, at=at, way=way: subject.with_arguments(**{name: np.asarray(at + t * way)}).apply(x)
        found = np.vdot(subject.with_arguments(**{name: at}).apply_vjp(x, ct)[0][name], way).real
        expected = ref.slope_along(moved, ct)
        assert abs(found - expected) <= DIFFERENCES * max(1.0, abs(expected)), f"gradient of {name}"


def test_vjp(make, seed):
    for n in (3, 4, 8, 17, 33):
        vjp(make(n), seed)


def test_vjp_stacks(make, seed):
    for n, batch in ((4, (3,)), (8, (17,)), (5, (2, 1))):
        vjp(make(n, batch), seed)


@pytest.mark.cpu  # differences need double precision
def test_vjp_against_differences(make, seed):
    differences(make(5), seed)
    differences(make(4, (2,)), seed)


test_vjp_against_differences.select = lambda case: real_of(case.dtype) is np.float64


def unitary(subject, rng):
    w = subject.matrix()
    assert w.dtype == subject.dtype
    for index in members(subject.batch_shape):
        assert ref.orthogonality_error(w[index]) <= UNITARITY, f"e(W) = {ref.orthogonality_error(w[index]):.3g}"
    x = ref.normal(rng, 3, *subject.batch_shape, w.shape[-1], dtype=subject.dtype)
    out = subject.apply(x)
    assert out.dtype == subject.dtype
    norms = np.linalg.norm(ref.wide(out), axis=-1), np.linalg.norm(ref.wide(x), axis=-1)
    close(*norms, forward(subject.dtype, subject.factors), "norms")


def test_unitary(make, seed):
    for n in (1, 2, 5, 16, 33):
        unitary(make(n), seed)
    unitary(make(6, (3,)), seed)
    unitary(make(64), seed)


test_unitary.select = lambda case: case.object.declaration.unitary


def dense(subject, rng):
    w, tolerance = subject.reference(), forward(subject.dtype, subject.factors)
    close(subject.matrix(), w, tolerance, "matrix")
    x = ref.normal(rng, 4, *subject.batch_shape, w.shape[-1], dtype=subject.dtype)
    y = ref.normal(rng, 4, *subject.batch_shape, w.shape[-2], dtype=subject.dtype)
    close(subject.apply(x), np.einsum("...ij,...j->...i", w, x), tolerance, "apply")
    close(subject.apply_adjoint(y), np.einsum("...ji,...j->...i", w.conj(), y), tolerance, "apply_adjoint")


def test_dense(make, seed):
    for n in (3, 4, 7, 8, 16, 17, 31, 32, 33, 50, 65):
        dense(make(n), seed)


def test_dense_stacks(make, seed):
    for n, batch in ((4, (3,)), (8, (17,)), (6, (2, 3)), (5, (1,)), (16, (9,)), (32, (5,))):
        dense(make(n, batch), seed)
