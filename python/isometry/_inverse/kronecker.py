"""The nearest Kronecker product, factor by factor (Van Loan and Pitsianis).

W = B (x) C as a matrix with a row for each element of B and a column for each of C has rank 1; its largest singular
vectors are the nearest factors in Frobenius norm. C is split in the same way.
"""

from collections.abc import Sequence

import numpy as np

from isometry._arrays import Array
from isometry._inverse.unitarity import widened


def arguments(w: Array, sizes: Sequence[tuple[int, int]], tol: float) -> list[Array]:
    """Factors (nb, p_f, q_f) of the stack W (nb, p, q), orthogonal ones of an orthogonal W; the last has the phase.

    Raises
    ------
    ValueError
        If ||W - product||_F > tol ||W||_F for one of the matrices.
    """
    if not np.isfinite(w).all():
        raise ValueError("w must be a Kronecker product of finite factors, but contains NaN or infinity")
    return [factor.astype(w.dtype) for factor in factors(widened(w), sizes, tol)]


def factors(w: Array, sizes: Sequence[tuple[int, int]], tol: float) -> list[Array]:
    """`arguments` in double precision, of finite numbers."""
    w, exponent = _scaled(w)
    nb, found, rest = len(w), [], w
    for p, q in sizes[:-1]:
        rows, columns = rest.shape[1] // p, rest.shape[2] // q
        table = rest.reshape(nb, p, rows, q, columns).swapaxes(2, 3).reshape(nb, p * q, rows * columns)
        left, size, right = np.linalg.svd(table, full_matrices=False)
        one = left[:, :, 0]
        largest = np.take_along_axis(one, np.abs(one).argmax(-1)[:, None], -1)
        phase = largest / np.abs(largest)
        found.append((one / phase).reshape(nb, p, q))
        rest = ((phase * size[:, :1]) * right[:, 0]).reshape(nb, rows, columns)
    norm = np.linalg.norm(rest, axis=(-2, -1))
    found.append(rest / np.where(norm > 0, norm, 1)[:, None, None])
    _check(w, found, norm, tol)
    # of unit norm so far: orthogonal factors have the norms sqrt(p_f)
    even = (norm / (w.shape[1] * w.shape[2]) ** 0.25) ** (1 / len(sizes))
    half = 2.0 ** (exponent / (2 * len(sizes)))  # twice, as 2^e may be infinite
    with np.errstate(over="ignore"):
        return [
            f * (even * (p * q) ** 0.25 * half)[:, None, None] * half[:, None, None]
            for f, (p, q) in zip(found, sizes, strict=True)
        ]


def _scaled(w: Array) -> tuple[Array, Array]:
    """W 2^-e with largest parts in 1/2..1, and e (nb,): squares of its entries neither under- nor overflow."""
    parts = np.maximum(np.abs(w.real), np.abs(w.imag))
    exponent = np.frexp(parts.max((-2, -1)))[1]
    half = exponent // 2  # 2^-e may be infinite
    for power in (half, exponent - half):
        w = w * np.ldexp(1.0, -power)[:, None, None]
    return w, exponent


def _check(w: Array, found: Sequence[Array], norm: Array, tol: float) -> None:
    product = norm[:, None, None] * found[0]
    for f in found[1:]:
        product = np.einsum("bij,bkl->bikjl", product, f).reshape(
            len(w), product.shape[1] * f.shape[1], product.shape[2] * f.shape[2]
        )
    distance = np.linalg.norm(w - product, axis=(-2, -1))
    wrong = np.flatnonzero(~(distance <= tol * np.linalg.norm(w, axis=(-2, -1))))
    if len(wrong):
        b = wrong[0]
        share = distance[b] / np.linalg.norm(w[b])
        raise ValueError(
            f"w must be a Kronecker product with factor_sizes {[f.shape[1:] for f in found]}: the nearest that was "
            f"found is {share:.1e} of the norm of matrix {b} away from it, tolerance {tol:.1e}"
        )
