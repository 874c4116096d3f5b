"""The rules of the rotational unit of memory, and their messages; written like those of `check`."""

import math

from isometry._rules import check
from isometry._rules.check import Shape


def setting(lam: object, eta: object) -> tuple[bool, float | None]:
    """Whether there is a memory, and the length of the states, after a check of both keywords."""
    if check.whole("lam", lam) not in (0, 1):
        raise ValueError(f"lam must be 0, rotations alone, or 1, with an associative memory, not {lam}")
    if eta is None:
        return lam == 1, None
    length = check.number("eta", eta)
    if not 0 < length < math.inf:
        raise ValueError(f"eta must be a positive number or None, not {eta}")
    return lam == 1, length


def arguments(
    x: Shape,
    w: Shape,
    u: Shape,
    b: Shape | None,
    embed_weight: Shape,
    embed_bias: Shape | None,
    h0: Shape | None,
    r0: Shape | None,
    memory: bool,
) -> tuple[int, int, int]:
    """(T, B, n) of a rotational unit, after a check of its arguments."""
    if len(x) != 3 or x[0] == 0 or x[1] == 0:
        raise ValueError(f"x must have shape (T, B, d) with T >= 1 and B >= 1, not {x}")
    if len(w) != 2 or w[0] != 2 * w[1] or w[1] == 0:
        raise ValueError(f"w must have shape (2n, n) with n >= 1, the rows of u and of tau, not {w}")
    (steps, batch, features), n = x, w[1]
    if u != (2 * n, features):
        raise ValueError(f"u must have shape (2n, d) = ({2 * n}, {features}), as w and x have it, not {u}")
    if b is not None:
        check.exact("b", b, (2 * n,), "(2n,)")
    if embed_weight != (n, features):
        raise ValueError(
            f"embed_weight must have shape (n, d) = ({n}, {features}), as w and x have it, not {embed_weight}"
        )
    if embed_bias is not None:
        check.exact("embed_bias", embed_bias, (n,), "(n,)")
    if h0 is not None and h0 not in ((batch, n), (n,)):
        raise ValueError(f"h0 must have shape (B, n) = ({batch}, {n}) or (n,) = ({n},), not {h0}")
    if r0 is not None:
        if not memory:
            raise ValueError("r0 must not be given with lam 0: only lam 1 has a memory")
        if r0 not in ((batch, n, n), (n, n)):
            raise ValueError(f"r0 must have shape (B, n, n) = ({batch}, {n}, {n}) or (n, n) = ({n}, {n}), not {r0}")
    return steps, batch, n
