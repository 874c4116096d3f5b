"""The computation of test_simd_paths.py on every path: sizes beyond the small tiles, with values in double precision.

Run by `script` in a separate process per path; the reference is computed once, by the test.
"""

import numpy as np

import reference as ref
from registry import DTYPES, Case
from registry.cayley import upper
from registry.dense import weight
from registry.householder import vectors
from subjects import NumpySubject

# n = 70: several tiles and a tail. n = 300: blocks of the inverse, and a product deeper than one block of 256.
# n = 512: row stride a power of two, so that rows share cache sets.
SIZES = [(stem, n, dtype) for stem in ("householder", "cayley") for n in (70, 300) for dtype in DTYPES]
SIZES += [(stem, 512, np.float32) for stem in ("householder", "dense")]
STEPS, BATCH = 5, 6


def subjects():
    """(name, subject, rows, cotangent of the rows, cotangent of W, arguments of the recurrence)."""
    for k, (stem, n, dtype) in enumerate(SIZES):
        rng = np.random.default_rng(k)
        if stem == "householder":
            arguments, variant = vectors(rng, n, dtype, (), {70: 70, 300: 150, 512: 40}[n]), "plain"
        elif stem == "cayley":
            arguments, variant = upper(rng, n, dtype, ()), "plain"
            arguments["upper"] = (arguments["upper"] * (2 / np.sqrt(n))).astype(dtype)  # of norm about 2
        else:
            arguments, variant = weight(rng, n, n, dtype, ()), "square"
        subject = NumpySubject(Case(stem, variant, dtype), arguments, n=n)
        draw = lambda *shape, rng=rng, dtype=dtype: ref.normal(rng, *shape, dtype=dtype)
        layer = (draw(STEPS, BATCH, 3), draw(n, 3), draw(STEPS, BATCH, n))
        yield f"{stem} {n} {np.dtype(dtype)}", subject, draw(20, n), draw(20, n), draw(n, n), layer


def results():
    """name -> array, by the compiled core."""
    out = {}
    for name, subject, x, ct, w_bar, (steps, v, bar) in subjects():
        grads, x_bar = subject.apply_vjp(x, ct)
        rec = subject.recurrence_vjp(steps, v, bar, activation="tanh")
        found = {
            "matrix": subject.matrix(), "apply": subject.apply(x), "adjoint": subject.apply_adjoint(x), "x_bar": x_bar,
            "states": subject.recurrence(steps, v, activation="tanh"), "x": rec["x"], "v": rec["input_weight"],
            **{f"matrix_vjp {k}": g for k, g in subject.matrix_vjp(w_bar).items()},
            **{f"apply_vjp {k}": g for k, g in grads.items()},
            **{f"recurrence_vjp {k}": g for k, g in rec["transition"].items()},
        }  # fmt: skip
        out.update({f"{name} {k}": a for k, a in found.items()})
    return out


def product(u):
    """H(u_1) ... H(u_m), one rank-one step after another."""
    w = np.eye(len(u), dtype=u.dtype)
    for column in u.T[::-1]:
        w -= np.outer(column * (2 / np.vdot(column, column).real), column.conj() @ w)
    return w


def product_vjp(w_bar, u):
    """The product rule of reference.householder_vjp, with the cotangent of each factor from that of the previous
    one."""
    reflect = lambda column, g: g - np.outer(column * (2 / np.vdot(column, column).real), column.conj() @ g)
    g = w_bar
    for column in u.T[:0:-1]:
        g = reflect(column, g.conj().T).conj().T
    out = np.zeros_like(u)
    for j, column in enumerate(u.T):
        out[:, j] = ref.reflection_vjp(column, g)
        if j + 1 < u.shape[1]:
            g = reflect(column, g)
            g = reflect(u[:, j + 1], g.conj().T).conj().T
    return out


def expected():
    """name -> (array in double precision, the subject it belongs to)."""
    out = {}
    for name, subject, x, ct, w_bar, (steps, v, bar) in subjects():
        if subject.case.stem == "householder":
            u = ref.wide(subject.arguments["vectors"])
            w, pull = product(u), lambda g, u=u: {"vectors": product_vjp(g, u)}
        else:
            w, pull = subject.reference(), subject.reference_matrix_vjp
        x, ct, w_bar = map(ref.wide, (x, ct, w_bar))
        rec = ref.recurrence_vjp(w, steps, v, bar, activation="tanh")
        found = {
            "matrix": w, "apply": x @ w.T, "adjoint": x @ w.conj(), "x_bar": ct @ w.conj(),
            "states": ref.recurrence(w, steps, v, activation="tanh"), "x": rec["x"], "v": rec["input_weight"],
            **{f"matrix_vjp {k}": g for k, g in pull(w_bar).items()},
            **{f"apply_vjp {k}": g for k, g in pull(ct.T @ x.conj()).items()},
            **{f"recurrence_vjp {k}": g for k, g in pull(rec["w"]).items()},
        }  # fmt: skip
        out.update({f"{name} {k}": (a, subject) for k, a in found.items()})
    return out
