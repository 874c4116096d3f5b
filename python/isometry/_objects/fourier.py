"""The restricted-capacity unitary matrix W = D3 R2 F^-1 D2 P R1 F D1: diagonals, reflections, Fourier transforms.

D_q = diag(e^{i phases[q]}), R_q the reflection of vectors[q], (P x)_i = x[permutation[i]], F the unitary transform.
"""

from isometry._objects._declaration import Argument, Declaration
from isometry._rules import check

FOURIER = Declaration(
    "FourierProduct",
    "fourier",
    (
        Argument("phases", "3 n", real=True),
        Argument("vectors", "2 n"),
        Argument("permutation", "n", trained=False, integer=True),
    ),
    checked=("vectors", "permutation"),
    required=3,
    batched=False,
)


def complex_only(argument: str, dtype: str) -> None:
    """The matrix is complex."""
    if check.REAL[dtype] == dtype:
        raise TypeError(f"{argument} must be complex (complex64 or complex128), not {dtype}")
