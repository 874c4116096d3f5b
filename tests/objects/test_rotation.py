"""Rotations: every degenerate pair, directions only, nearly opposite vectors."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from isometry.torch import formulas
from tolerance import close, eps, forward, gradient, identical

REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


def torch_gradients(start, end, ct):
    """W and the gradients of both vectors, by the kernel and by the formula."""
    found = []
    for formula in (False, True):
        a, b = (torch.from_numpy(v.copy()).requires_grad_() for v in (start, end))
        w = formulas.rotation.matrix(a, b) if formula else it.Rotation(a, b).matrix()
        found.append([t.detach().numpy() for t in (w, *torch.autograd.grad(w, (a, b), torch.from_numpy(ct)))])
    return found


def degenerate(dtype):
    """Pairs without a gradient, and their matrices."""
    v = np.array([2.0, -1.0, 0.5, 3.0], dtype)
    zero, tiny = 0 * v, np.full(4, np.finfo(dtype).tiny / 8, dtype)
    ah = v / np.linalg.norm(v.astype(float))
    e = np.eye(4)[2] - ah[2] * ah
    e /= np.linalg.norm(e)
    turn = np.eye(4) - 2 * np.outer(ah, ah) - 2 * np.outer(e, e)
    return [
        (zero, v, np.eye(4)),
        (v, zero, np.eye(4)),
        (zero, zero, np.eye(4)),
        (tiny, v, np.eye(4)),
        (v, -3 * v, turn),
    ]


@REAL
def test_degenerate_pairs_have_no_gradient(dtype, seed):
    for start, end, w in degenerate(dtype):
        ct = ref.normal(seed, 4, 4, dtype=dtype)
        op = iso.Rotation(start, end)
        close(op.matrix(), w, forward(dtype, 4))
        for grads in (op.matrix_vjp(ct), op.apply_vjp(ct, ct)[0], op.apply_adjoint_vjp(ct, ct)[0]):
            assert not any(g.any() for g in grads.values())
        for found, *grads in torch_gradients(start, end, ct):
            close(found, w, forward(dtype, 4))
            assert not any(g.any() for g in grads)
        _, x_bar = op.apply_vjp(ct, ct)
        close(x_bar, ct @ w, forward(dtype, 4))


@REAL
def test_one_direction_has_the_limit_of_the_gradient(dtype, seed):
    a, x, ct = (ref.normal(seed, 6, dtype=dtype) for _ in range(3))
    grads, x_bar = iso.Rotation(a, 2 * a).apply_vjp(x, ct)
    ah = a / np.linalg.norm(a)
    limit = ct * (ah @ x) - x * (ah @ ct)
    close(grads["end"], limit / np.linalg.norm(2 * a), gradient(dtype, 6))
    close(grads["start"], -limit / np.linalg.norm(a), gradient(dtype, 6))
    close(x_bar, ct, forward(dtype, 6))


def test_one_number_is_not_turned():
    op = iso.Rotation([[2.0], [2.0]], [[3.0], [-3.0]])
    identical(op.matrix(), np.ones((2, 1, 1)))
    assert not any(g.any() for g in op.matrix_vjp(np.ones((2, 1, 1))).values())
    a, b = (torch.ones(2, 1, dtype=torch.float64).requires_grad_() for _ in range(2))
    identical(torch.func.vmap(lambda a, b: it.Rotation(a, b).matrix())(a, -b).detach().numpy(), np.ones((2, 1, 1)))


@REAL
def test_lengths_do_not_matter(dtype, seed):
    """Norms whose squares leave the range of the type."""
    start, end, ct = (ref.normal(seed, 9, dtype=dtype) for _ in range(3))
    far = dtype(2.0) ** (100 if dtype is np.float32 else 900)
    one, two = iso.Rotation(start, end), iso.Rotation(start * far, end / far)
    close(two.matrix(), one.matrix(), forward(dtype, 4))
    expected, found = one.apply_vjp(ct, start)[0], two.apply_vjp(ct, start)[0]
    close(found["start"] * far, expected["start"], gradient(dtype, 9))
    close(found["end"] / far, expected["end"], gradient(dtype, 9))
    kernel, formula = torch_gradients(start * far, end / far, np.outer(ct, start))
    for a, b, scale in zip(kernel, formula, (1, far, 1 / far), strict=True):
        close(b * scale, a * scale, gradient(dtype, 9), floor=1.0)


@REAL
def test_nearly_opposite_vectors_are_still_rotated(dtype, seed):
    """R is orthogonal to rounding; R ah = bh up to eps / ||ah + bh||."""
    a, e = np.linalg.qr(ref.normal(seed, 8, 2))[0].T
    for gap in (1e-1, 1e-2, 1e-3):
        start, end = a.astype(dtype), (-a + gap * e).astype(dtype)
        op = iso.Rotation(start, end)
        assert iso.orthogonality_error(op.matrix()) < 20
        assert np.linalg.norm(op.apply(start) - end / np.linalg.norm(end)) < 20 * eps(dtype) / gap


def plane(start, end, w_bar):
    """[[c, -s], [s, c]] in double precision, and its gradients: along the angle, which turns with each vector."""
    a, b = (v.astype(float) / np.linalg.norm(v.astype(float)) for v in (start, end))
    j = np.array([[0.0, -1.0], [1.0, 0.0]])
    w = (a @ b) * np.eye(2) + (a[0] * b[1] - a[1] * b[0]) * j
    tau = np.sum(w_bar * (j @ w))
    return w, {"start": -tau * (j @ a) / np.linalg.norm(start), "end": tau * (j @ b) / np.linalg.norm(end)}


@REAL
def test_the_plane_is_well_conditioned_up_to_opposite_directions(dtype, seed):
    """For n = 2 the angle is that between the vectors, whatever their sum."""
    pairs = [(np.array([1.7302872, 0.4293955], dtype), np.array([-1.7895391, -0.4448455], dtype))]
    for gap in (1.0, 1e-1, 1e-3, 1e-5, 100 * float(eps(dtype))):
        for side in (-gap, gap):
            a, length = ref.normal(seed, 2, dtype=dtype), seed.uniform(0.1, 10.0)
            pairs.append((a, (-length * (a + side * np.array([-a[1], a[0]]))).astype(dtype)))
    for start, end in pairs:
        ct = ref.normal(seed, 2, 2, dtype=dtype)
        expected, grads = plane(start, end, ct)
        size = max(np.linalg.norm(ct) / np.linalg.norm(v) for v in (start, end))
        for found, start_bar, end_bar in torch_gradients(start, end, ct):
            close(found, expected, forward(dtype, 2))
            close(start_bar, grads["start"], gradient(dtype, 2), floor=size)
            close(end_bar, grads["end"], gradient(dtype, 2), floor=size)
        op = iso.Rotation(start, end)
        found, _ = op.apply_adjoint_vjp(np.eye(2, dtype=dtype), np.ascontiguousarray(ct))
        # row i is R^T e_i
        for name in grads:
            close(found[name], grads[name], gradient(dtype, 2), floor=size)
