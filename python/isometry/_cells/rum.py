"""The rotational unit of memory: the state is turned by a rotation that input and state determine.

u = sigma(u'),  (u', tau) = W h + U x + b,  e = U_e x + b_e,  R <- R^lam Rotation(e, tau),
h' = u * h + (1 - u) * phi(e + R h),  h = h' or eta h' / ||h'||.

Saved for backward are u, tau, e and k of every step, but no memory: backward inverts the rotations one by one, from the
last memory on.
"""

import math

from isometry._cells._declaration import OWN_BIAS, Array, Cell
from isometry._rules import check

#: The kernel takes u and embed_weight as one array, and their biases too; so do layers.
STACKED = Cell("rum", as_given="w and x")
RUM = Cell(
    "rum",
    as_given="w and x",
    own=(
        Array("x", "T B d", needed=True),
        Array("w", "2n n", needed=True, note="the rows of u and of tau"),
        Array("u", "2n d", needed=True),
        Array("b", "2n"),
        Array("embed_weight", "n d", needed=True),
        Array("embed_bias", "n"),
        Array("h0", "B n"),
        Array("r0", "B n n"),
        Array(OWN_BIAS, ""),
    ),
)


def setting(lam: object, eta: object, r0: object = None) -> tuple[bool, float | None]:
    """Whether there is a memory, and the length of the states, after a check of both keywords, and of the first memory
    that only lam 1 has."""
    if check.whole("lam", lam) not in (0, 1):
        raise ValueError(f"lam must be 0, rotations alone, or 1, with an associative memory, not {lam}")
    if r0 is not None and lam == 0:
        raise ValueError("r0 must not be given with lam 0: only lam 1 has a memory")
    if eta is None:
        return lam == 1, None
    length = check.number("eta", eta)
    if not 0 < length < math.inf:
        raise ValueError(f"eta must be a positive number or None, not {eta}")
    return lam == 1, length
