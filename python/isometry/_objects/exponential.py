"""The exponential of a skew-symmetric or skew-Hermitian matrix: W = exp(A).

A is packed by its strict upper triangle, row by row, A[j, i] = -conj(A[i, j]), and A[j, j] = i diagonal[j].
"""

from isometry._objects._declaration import Declaration, Determinant

EXPONENTIAL = Declaration(
    "Exponential", "exponential", determinant=Determinant(turns={"diagonal": 1}), saves_matrix=True
)
