"""The skew matrix, and a last factor, of an orthogonal or unitary matrix, by the core."""

import numpy as np

from isometry import _core
from isometry._arrays import Array, DType, real_type, stacked
from isometry._rules import tolerance
from isometry._rules.check import Shape


def arguments(
    w: Array, signs: Array | None, phases: Array | None, batch: Shape, dtype: DType, tol: float | None
) -> dict[str, Array]:
    """upper and, for a complex `dtype`, diagonal of the transform that is W, (*batch, ...); without signs and phases
    the chosen one of them too.
    """
    n, complex_, real = w.shape[-1], dtype.kind == "c", real_type(dtype)
    given, length = signs if phases is None else phases, n * (n - 1) // 2
    if given is None:
        last = np.empty((*batch, n), real)
    else:  # for complex numbers the extension takes signs as phases 0 or pi
        given_last = np.where(signs < 0, np.pi, 0.0) if complex_ and signs is not None else given
        last = np.array(np.broadcast_to(given_last, (*batch, n)), real, order="C")
    q = stacked(w, 2, batch, dtype)
    upper, diagonal = np.empty((len(q), length), dtype), np.empty((len(q), n), real) if complex_ else None
    bound = tolerance.unitary(tol, n, dtype.name)
    _core.cayley_from_matrix(q, last.reshape(len(q), n), given is None, upper, diagonal, bound)
    found = {"upper": upper.reshape(*batch, length)}
    if diagonal is not None:
        found["diagonal"] = diagonal.reshape(*batch, n)
    if given is None:
        found["phases" if complex_ else "signs"] = last
    return found
