"""The rules of the gated recurrent units, and their messages; written like those of `check`."""

from isometry._rules import check, check_recurrence
from isometry._rules.check import Shape


def arguments(
    x: Shape,
    w: Shape,
    u: Shape,
    b: Shape | None,
    h0: Shape | None,
    hidden_bias: Shape | None,
    reset: str,
    own: bool = True,
) -> tuple[int, int, int]:
    """(T, B, n) of a GRU whose w holds W_h too or not, after a check of its arguments."""
    check.choice("reset", reset, "before", "after")
    if len(x) != 3 or x[0] == 0 or x[1] == 0:
        raise ValueError(f"x must have shape (T, B, d) with T >= 1 and B >= 1, not {x}")
    count, gates = (3, "z, r and h") if own else (2, "z and r")
    if len(w) != 3 or w[0] != count or w[1] != w[2] or w[1] == 0:
        raise ValueError(f"w must have shape ({count}, n, n) with n >= 1, the matrices of {gates}, not {w}")
    (steps, batch, features), n = x, w[1]
    if u != (3, n, features):
        raise ValueError(f"u must have shape (3, n, d) = (3, {n}, {features}), as w and x have it, not {u}")
    if b is not None:
        check.exact("b", b, (3, n), "(3, n)")
    if h0 is not None and h0 not in ((batch, n), (n,)):
        raise ValueError(f"h0 must have shape (B, n) = ({batch}, {n}) or (n,) = ({n},), not {h0}")
    if hidden_bias is not None:
        if reset != "after":
            raise ValueError("hidden_bias must not be given with reset 'before': only reset 'after' has one")
        check.exact("hidden_bias", hidden_bias, (n,), "(n,)")
    return steps, batch, n


def transition(shape: Shape, batch_shape: Shape, dtype: str, n: int) -> None:
    """Refuses anything but one real operator n x n as W_h."""
    check_recurrence.recurrence_transition(shape, batch_shape)
    if dtype.startswith("complex"):
        raise ValueError(f"transition must be real, for the states of a gated unit are, not {dtype}")
    if shape != (n, n):
        raise ValueError(f"transition must have shape (n, n) = ({n}, {n}), as w has it, not {shape}")
