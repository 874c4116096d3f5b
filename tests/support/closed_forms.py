"""The check of test_space.py, run by `script` in a process of each path: real rotations of R^2 and R^3
against their formulas in extended precision, derivatives by complex steps."""

import numpy as np

import isometry as iso
from isometry import _core

WIDE, STEP = np.clongdouble, 1e-30
TINY = {np.float32: (1e-44, 1e-30, 1e-10, 1e-4), np.float64: (1e-310, 1e-170, 1e-20, 1e-8)}
ANGLES = [0.0, 1e-3, 0.5, 0.99, 1.01, 2.0, *(np.pi + gap for gap in (-1e-3, -1e-6, 0, 1e-6)), 4.0, 2 * np.pi, 50.0]


def formula(name, upper, signs):
    """W (..., n, n) of triangles (..., n (n - 1) / 2), complex ones too."""
    n = 2 if upper.shape[-1] == 1 else 3
    u = np.moveaxis(upper, -1, 0)
    a = np.zeros((*upper.shape[:-1], n, n), WIDE)
    for value, (i, j) in zip(u, ((0, 1), (0, 2), (1, 2)), strict=False):
        a[..., i, j], a[..., j, i] = value, -value
    square = (u * u).sum(0)[..., None, None]
    if name == "Cayley":  # (I + A)^{-1} (I - A) = I - 2 (A - A^2) / (1 + |a|^2), as A^3 = -|a|^2 A
        w = np.eye(n) - 2 * (a - a @ a) / (1 + square)
    else:
        t = np.sqrt(square)
        ratio = lambda x: np.where(x == 0, 1, np.sin(x) / np.where(x == 0, 1, x))
        w = np.eye(n) + ratio(t) * a + ratio(t / 2) ** 2 / 2 * (a @ a)
    return w if signs is None else w * signs[..., None, :]


def derivatives(name, upper, signs):
    """dW / du_k, on the last axis."""
    wide = upper.astype(WIDE)
    steps = [formula(name, wide + 1j * STEP * e, signs).imag / STEP for e in np.eye(upper.shape[-1])]
    return np.stack(steps, -1)


def drawn(rng, n, sizes, dtype):
    """Four triangles of each size."""
    axes = rng.standard_normal((4 * len(sizes), n * (n - 1) // 2))
    axes[::4, 1:] = 0
    axes /= np.abs(axes).max(-1, keepdims=True)
    return (axes / np.linalg.norm(axes, axis=-1, keepdims=True) * np.repeat(sizes, 4)[:, None]).astype(dtype)


def near(found, expected, bound, what):
    """Of every rotation within its bound, relative to 1; in units that the bound gives."""
    error = np.abs(found - expected).reshape(len(found), -1).max(-1).astype(float) if found.size else np.zeros(0)
    worst = int(np.argmax(error / bound))
    assert (error <= bound).all(), f"{what}: rotation {worst}, {error[worst]:.1e} of {bound[worst]:.1e}"


def check_values(name, n, dtype, with_signs, seed):
    """W, W x, W^T x and all gradients, of one vector and of several for each rotation."""
    rng = np.random.default_rng(seed)
    eps = np.finfo(dtype).eps
    sizes = np.tan(np.minimum(np.array(ANGLES), 3.1415) / 2) if name == "Cayley" else ANGLES
    upper = drawn(rng, n, [*sizes, *TINY[dtype]], dtype)
    signs = rng.choice([-1.0, 1.0], (len(upper), n)).astype(dtype) if with_signs else None
    op = getattr(iso, name)(upper, **({"signs": signs} if with_signs else {}))
    w = formula(name, upper.astype(WIDE), signs).real
    slopes = derivatives(name, upper, signs)
    angle = np.linalg.norm(upper.astype(np.float64), axis=-1) if name == "Exponential" else np.zeros(len(upper))
    unit = 12 * eps * (1 + angle)
    near(op.matrix(), w, unit, "matrix")
    steep = np.maximum(np.abs(slopes).max((1, 2, 3)), np.finfo(dtype).tiny).astype(float)
    ct = rng.standard_normal((len(upper), n, n)).astype(dtype)
    near(op.matrix_vjp(ct)["upper"], np.einsum("bij,bijk->bk", ct, slopes), 60 * unit * steep, "matrix_vjp")
    for rows in (1, 3):
        x, y = rng.standard_normal((2, rows, len(upper), n)).astype(dtype)
        for adjoint in (False, True):
            to = op.H if adjoint else op
            v, d = (np.swapaxes(w, -1, -2), np.swapaxes(slopes, 1, 2)) if adjoint else (w, slopes)
            near(np.moveaxis(to(x), 1, 0), np.einsum("bij,rbj->bri", v, x), 6 * unit, f"apply {rows} {adjoint}")
            bars, x_bar = op.apply_adjoint_vjp(x, y) if adjoint else op.apply_vjp(x, y)
            near(np.moveaxis(x_bar, 1, 0), np.einsum("bij,rbi->brj", v, y), 6 * unit, f"x_bar {rows} {adjoint}")
            expected = np.einsum("rbi,bijk,rbj->bk", y, d, x)
            near(bars["upper"], expected, 100 * unit * steep, f"upper_bar {rows} {adjoint}")


def check_members(name, n, dtype, seed):
    """A rotation has the same bits in every stack and lane."""
    rng = np.random.default_rng(seed)
    upper = drawn(rng, n, ANGLES, dtype)[:41]
    x = rng.standard_normal((41, n)).astype(dtype)
    law = getattr(iso, name)

    def results(rows):
        op = law(upper[rows])
        bars, x_bar = op.apply_vjp(x[rows], x[rows])
        w = op.matrix()
        back = law.from_matrix(w)
        return [w, op(x[rows]), op.apply_adjoint(x[rows]), x_bar, bars["upper"], op.matrix_vjp(w)["upper"], back.upper]

    whole = results(slice(None))
    for count in (1, 2, 5, 16, 17):
        for first in (0, 41 - count):
            rows = slice(first, first + count)
            for a, b in zip(results(rows), whole, strict=True):
                assert (a == b[rows]).all()


def check_inverse(n, dtype, seed):
    """Logarithms and Cayley parameters, of both determinants, relative to the angle."""
    rng = np.random.default_rng(seed)
    eps = np.finfo(dtype).eps
    sizes = [size for size in (*TINY[dtype], *ANGLES) if size < 3.0]
    upper = drawn(rng, n, sizes, dtype)
    w = formula("Exponential", upper.astype(WIDE), None).real.astype(dtype)
    found = iso.Exponential.from_matrix(w).upper
    size = np.linalg.norm(upper.astype(np.float64), axis=-1)
    near(found, upper, 30 * eps * np.maximum(size, 0.1 * (size > 1e-5)) + np.finfo(dtype).tiny, "logarithm")
    half = drawn(rng, n, [np.pi - gap for gap in (1e-2, 1e-5, 1e-8, 1e-12, 0)], np.float64)
    near_half = formula("Exponential", half.astype(WIDE), None).real.astype(dtype)
    logs = iso.Exponential.from_matrix(near_half)
    assert (np.linalg.norm(logs.upper.astype(np.float64), axis=-1) <= np.pi * (1 + eps)).all()
    near(logs.matrix(), near_half, np.full(len(half), 30 * eps), "logarithm near half a turn")
    both = np.concatenate((w, near_half)).repeat(4, 0)
    both = (both * rng.choice([-1.0, 1.0], both.shape[:2])[:, None, :]).astype(dtype)
    op = iso.Cayley.from_matrix(both)
    assert (np.abs(op.upper) <= 1 + 8 * eps).all() and (np.abs(op.signs) == 1).all()
    near(op.matrix(), both, np.full(len(both), 30 * eps), "Cayley")
    again = iso.Cayley.from_matrix(both, signs=op.signs)
    near(again.upper, op.upper, np.full(len(both), 20 * eps), "with these signs")


def check(path):
    """Everything, on the path of this process."""
    assert _core.config()["simd"] == path
    for n in (2, 3):
        for dtype in (np.float32, np.float64):
            for seed, name in enumerate(("Cayley", "Exponential")):
                check_values(name, n, dtype, False, seed)
                check_members(name, n, dtype, seed)
            check_values("Cayley", n, dtype, True, 2)
            check_inverse(n, dtype, 3)
