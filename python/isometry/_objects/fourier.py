"""The restricted-capacity unitary matrix W = D3 R2 F^-1 D2 P R1 F D1: diagonals, reflections, Fourier transforms.

D_q = diag(e^{i phases[q]}), R_q the reflection of vectors[q], (P x)_i = x[permutation[i]], F the unitary transform.
"""

from isometry._objects._declaration import Declaration, Determinant

FOURIER = Declaration(
    "FourierProduct",
    "fourier",
    checked=("vectors", "permutation"),
    required=3,
    determinant=Determinant(turns={"phases": 1}, permutations=("permutation",)),
)
