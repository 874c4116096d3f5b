"""What the inverse maps start with: double precision, and the check that W is orthogonal or unitary."""

import numpy as np

from isometry._arrays import Array


def widened(w: Array) -> Array:
    """W in double precision."""
    return w.astype(np.result_type(w, np.float64))


def unitary(w: Array, tol: float) -> None:
    """Refuse a stack (nb, n, n) unless max|W^H W - I| <= tol for each matrix; NaN is refused too."""
    with np.errstate(invalid="ignore", over="ignore"):
        gram = np.conj(np.swapaxes(w, -1, -2)) @ w
        defect = np.abs(gram - np.eye(w.shape[-1])).max((-2, -1))
    wrong = np.flatnonzero(~(defect <= tol))
    if len(wrong):
        b, kind = wrong[0], "unitary" if w.dtype.kind == "c" else "orthogonal"
        raise ValueError(
            f"w must be {kind}: max |W^H W - I| of matrix {b} is {defect[b]:.1e}, tolerance {tol:.1e}; "
            "nearest=True, or procrustes, takes the nearest such matrix"
        )
