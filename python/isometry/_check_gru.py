"""The rules of the gated recurrent unit, and their messages; written like those of `_check`."""

from isometry import _check
from isometry._check import Shape


def arguments(
    x: Shape, w: Shape, u: Shape, b: Shape | None, h0: Shape | None, hidden_bias: Shape | None, reset: str
) -> tuple[int, int, int]:
    """(T, B, n) of a GRU, after a check of its arguments."""
    _check.choice("reset", reset, "before", "after")
    if len(x) != 3 or x[0] == 0 or x[1] == 0:
        raise ValueError(f"x must have shape (T, B, d) with T >= 1 and B >= 1, not {x}")
    if len(w) != 3 or w[0] != 3 or w[1] != w[2] or w[1] == 0:
        raise ValueError(f"w must have shape (3, n, n) with n >= 1, the matrices of z, r and h, not {w}")
    (steps, batch, features), n = x, w[1]
    if u != (3, n, features):
        raise ValueError(f"u must have shape (3, n, d) = (3, {n}, {features}), as w and x have it, not {u}")
    if b is not None:
        _check.exact("b", b, (3, n), "(3, n)")
    if h0 is not None and h0 not in ((batch, n), (n,)):
        raise ValueError(f"h0 must have shape (B, n) = ({batch}, {n}) or (n,) = ({n},), not {h0}")
    if hidden_bias is not None:
        if reset != "after":
            raise ValueError("hidden_bias must not be given with reset 'before': only reset 'after' has one")
        _check.exact("hidden_bias", hidden_bias, (n,), "(n,)")
    return steps, batch, n
