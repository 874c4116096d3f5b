"""Products of Householder reflections: W = H(U[:,0]) ... H(U[:,m-1]) E, H(u) = I - 2 u u^H / ||u||^2.

The last factor E is I, diag(1, ..., 1, sign), or diag(e^{i phases}).
"""

from isometry._objects._declaration import Declaration, Determinant
from isometry._rules import check
from isometry._rules.check import Shape

HOUSEHOLDER = Declaration(
    "Householder",
    "householder",
    empty=("m",),
    checked=("vectors", "sign"),
    loose=("sign",),
    determinant=Determinant(lambda sizes: (-1) ** sizes["m"], products=("sign",), turns={"phases": 1}),
)


def trapezoid(u: Shape, sign: str) -> tuple[int, int]:
    """(n, m) of the oRNN transition's array of shape (*, n, m), 1 <= m <= n, and the policy of its sign."""
    check.stack("u", u, 2, "(*, n, m)")
    n, m = u[-2:]
    if not 1 <= m <= n:
        raise ValueError(f"u must have shape (*, n, m) with 1 <= m <= n, not {u}")
    check.choice("sign", sign, "hard", "soft")
    return n, m


def reflections(m: int | None, n: int) -> tuple[int, int]:
    """(n, number of reflections) of a random product of size n."""
    n = check.count("n", n, 1)
    return n, n - 1 if m is None else check.within("m", m, 0, n)
