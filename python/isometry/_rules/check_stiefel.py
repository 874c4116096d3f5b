"""What both faces check of a Cayley step on the Stiefel manifold, and of the optimisers that take it."""

from typing import NoReturn

from isometry._rules import check
from isometry._rules.check import Shape

SCALINGS = ("elementwise", "norm")


def rate(argument: str, value: object) -> float:
    """A learning rate: a number of at least 0."""
    found = check.number(argument, value)
    if not 0 <= found < float("inf"):
        raise ValueError(f"{argument} must be a finite number of at least 0, not {found}")
    return found


def step(w: Shape, gradient: Shape) -> None:
    """Square matrices and a gradient of their shape."""
    check.square("w", w)
    check.exact("gradient", gradient, w, "that of w")


def too_long(argument: str) -> NoReturn:
    """A rate for which I in I + rate/2 A is lost to rounding."""
    raise ValueError(
        f"{argument} must keep rate/2 ||A||, A = G W^H - W G^H, finite and below 1/eps of float64, 4.5e15: with this "
        "one I + rate/2 A is numerically singular, and the next W would not be orthogonal"
    )


def rmsprop(alpha: object, eps: object, scaling: object) -> None:
    """Decay in [0, 1), eps > 0, a known scaling."""
    if not 0 <= check.number("alpha", alpha) < 1:
        raise ValueError(f"alpha must lie in [0, 1), not {alpha}")
    if not check.number("eps", eps) > 0:
        raise ValueError(f"eps must be greater than 0, not {eps}")
    check.choice("scaling", scaling, *SCALINGS)


def is_pairs(shape: Shape, complex_: bool, chosen: object) -> bool:
    """Whether a parameter holds matrices as pairs (..., n, n, 2): as chosen, else by its shape."""
    matrix = len(shape) >= 2 and shape[-1] == shape[-2] > 0
    pairs = not complex_ and len(shape) >= 3 and shape[-1] == 2 and shape[-2] == shape[-3] > 0
    if chosen is not None:
        chosen = check.flag("pairs", chosen)
        if not (pairs if chosen else matrix):
            form = "real, of shape (..., n, n, 2), with pairs=True" if chosen else "square, of shape (..., n, n)"
            raise ValueError(f"a parameter must be {form}, not {'complex ' * complex_}{shape}")
        return chosen
    if matrix and pairs:
        raise ValueError(
            f"a parameter of shape {shape} may hold matrices 2 x 2 or pairs: choose by the option pairs=True or False"
        )
    if not (matrix or pairs):
        raise ValueError(f"a parameter must be square, of shape (..., n, n), or real pairs (..., n, n, 2), not {shape}")
    return pairs
