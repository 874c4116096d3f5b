"""W = U diag(sigma) V^H with sigma_i = 1 + margin tanh(logits_i / 2) between 1 - margin and 1 + margin."""

from isometry._objects._declaration import Declaration, Determinant
from isometry._rules import check

BOUNDED_SVD = Declaration(
    "BoundedSvd",
    "bounded_svd",
    matrix=("n", "k"),
    checked=("margin",),
    loose=("u", "logits", "v"),
    determinant=Determinant(lambda sizes: 0 if sizes["r"] < sizes["n"] else None),
    required=4,
)


def margin_of(margin: object) -> float:
    """A number in [0, 1]."""
    number = check.number("margin", margin)
    if not 0 <= number <= 1:
        raise ValueError(f"margin must lie in [0, 1], not {number}")
    return number
