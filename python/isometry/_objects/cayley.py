"""The scaled Cayley transform: W = (I + A)^{-1} (I - A) D with A skew-Hermitian, D = diag(signs) or diag(e^{i phases}).

A is packed by its strict upper triangle, row by row, A[j, i] = -conj(A[i, j]), and A[j, j] = i diagonal[j].
"""

from isometry._objects._declaration import Argument, Declaration, Determinant
from isometry._rules import check

CAYLEY = Declaration(
    "Cayley",
    "cayley",
    checked=("signs",),
    determinant=Determinant(products=("signs",), turns={"phases": 1}, real=True),
    saves_matrix=True,
)

#: The arguments of `from_matrix` besides w.
FROM_MATRIX = Declaration("Cayley", "cayley", (Argument("w", "n n"), *CAYLEY.arguments[2:]))


def negative_ones(number: int | None, n: int) -> tuple[int, int]:
    """(n, number of -1 in the last factor) of a random Cayley transform of size n; by default half of them."""
    n = check.count("n", n, 1)
    return n, n // 2 if number is None else check.within("negative_ones", number, 0, n)
