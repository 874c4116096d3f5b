"""Checks of activations and of the recurrence, and their messages, in the style of `check`."""

from typing import NoReturn

from isometry._rules import check
from isometry._rules.check import Shape

#: activation name -> (features must be even, features per entry of its own bias or 0 without one).
ACTIVATIONS = {
    "identity": (False, 0),
    "tanh": (False, 0),
    "relu": (False, 0),
    "leaky_relu": (False, 0),
    "oplu": (True, 0),
    "oplu_halves": (True, 0),
    "modrelu": (False, 1),
    "modrelu_realrep": (True, 2),
}


def activation(name: str, argument: str = "name") -> None:
    """The activation exists."""
    if not isinstance(name, str):
        check.kind(argument, "a name", name)
    if name not in ACTIVATIONS:
        raise ValueError(f"{argument} must be one of {', '.join(map(repr, ACTIVATIONS))}, not {name!r}")


def activation_units(
    name: str,
    features: int,
    bias: Shape | None,
    *,
    complex_: bool = False,
    argument: str = "bias",
    features_of: str = "z",
) -> int:
    """The length of the activation's own bias (0 without one), after a check of the bias and of the features."""
    even, per_unit = ACTIVATIONS[name]
    if even and features % 2:
        raise ValueError(f"{features_of} must have an even number of features with activation {name!r}, not {features}")
    if complex_ and name == "modrelu_realrep":
        raise ValueError(f"{features_of} must be real with activation 'modrelu_realrep'; complex states take 'modrelu'")
    if not per_unit:
        if bias is not None:
            raise ValueError(
                f"{argument} must not be given with activation {name!r}: only the modReLU activations have one"
            )
        return 0
    if bias is None:
        raise ValueError(f"{argument} must be given with activation {name!r}")
    check.exact(argument, bias, (features // per_unit,))
    return features // per_unit


def within_blocks(name: str, each: int) -> bool:
    """Whether the activation of blocks of so many features is that of all features, whose pairs do not lie in two."""
    return name not in ("oplu_halves", "modrelu_realrep") and (name != "oplu" or each % 2 == 0)


def slope(value: float) -> None:
    """A number, 0 <= slope < 1."""
    if not 0 <= check.number("slope", value) < 1:
        raise ValueError(f"slope must lie in [0, 1), not {value}")


def activation_input(shape: Shape) -> None:
    """The argument of an activation has a feature axis."""
    if not shape:
        raise ValueError("z must have shape (..., n), not ()")


def layer_transition(layer: str, shape: Shape, n: int) -> None:
    """The W of a layer is (hidden_size, hidden_size)."""
    if shape != (n, n):
        raise ValueError(f"{layer} must have a square W of size hidden_size = {n}, not {shape}")


def unitary_matrix(distance: float, bound: float, complex_: bool) -> None:
    """A matrix to set is this far from the nearest orthogonal or unitary one; NaN is refused too."""
    if not distance <= bound:
        kind = "unitary" if complex_ else "orthogonal"
        raise ValueError(
            f"w must be {kind}: the nearest such matrix, isometry.torch.linalg.procrustes(w), is {distance:.1e} away "
            f"in Frobenius norm, tolerance {bound:.1e}"
        )


def block_diagonal(distance: float, bound: float, heads: int) -> None:
    """A matrix to set is this far from the nearest one of so many blocks; NaN is refused too."""
    if not distance <= bound:
        raise ValueError(
            f"w must be block-diagonal, with heads = {heads} blocks of the same size: the numbers outside of them are "
            f"{distance:.1e} in Frobenius norm, tolerance {bound:.1e}"
        )


def reached_matrix(distance: float, bound: float) -> None:
    """A matrix to set is this far from that of the parameters; NaN is refused too."""
    if not distance <= bound:
        raise ValueError(
            f"w is not reached by the parameters of this layer: the matrix that was found is {distance:.1e} away in "
            f"Frobenius norm, tolerance {bound:.1e}"
        )


def recurrence_transition(shape: Shape, batch_shape: Shape) -> int:
    """The state size n of a transition: one square operator."""
    if batch_shape:
        raise ValueError(
            f"transition must be one operator, of batch_shape (), not a stack of batch_shape {batch_shape}"
        )
    if shape[0] != shape[1]:
        raise ValueError(f"transition must be square, of shape (n, n), not {shape}")
    return shape[0]


def gated_transition(shape: Shape, dtype: str, n: int) -> None:
    """Refuses anything but a real operator n x n as W_h of a gated unit."""
    if dtype.startswith("complex"):
        raise ValueError(f"transition must be real, for the states of a gated unit are, not {dtype}")
    if shape != (n, n):
        raise ValueError(f"transition must have shape (n, n) = ({n}, {n}), as w has it, not {shape}")


def lengths_shape(shape: Shape, batch: int) -> None:
    """Lengths have the shape (B,)."""
    check.exact("lengths", shape, (batch,), "(B,)")


def lengths_range(smallest: int, largest: int, steps: int, least: int = 0) -> None:
    """All lengths are in 0..T, or above, given the smallest and the largest."""
    if smallest < least or largest > steps:
        wrong = smallest if smallest < least else largest
        raise ValueError(f"lengths must lie in {least}..T = {least}..{steps}, not {wrong}")


#: What backward gets of the states, and what is returned of them.
CHECKPOINTS, OUTPUTS = ("none", "sqrt", "reversible"), ("states", "last")


def reversible(name: str, on_input: bool, unitary: bool, argument: str = "activation") -> None:
    """The steps of a recurrence with this activation can be undone: of the input alone, or all, and with this W."""
    if not on_input and name not in ("identity", "oplu", "oplu_halves"):
        raise ValueError(
            f"checkpoint='reversible' undoes steps, which needs {argument} 'identity', 'oplu' or 'oplu_halves', not "
            f"{name!r}: others lose their argument, or multiply errors at every step; take checkpoint='sqrt'"
        )
    if not unitary:
        raise ValueError(
            "checkpoint='reversible' undoes steps by W^H, which needs a transition that is orthogonal or unitary for "
            "all values of its arguments; take checkpoint='sqrt'"
        )


def checkpoint(kind: str, *, affine: bool, memory: bool) -> None:
    """A checkpoint of a cell: gates cannot be undone, and memories would have to be kept with the states."""
    check.choice("checkpoint", kind, *CHECKPOINTS)
    if kind == "reversible" and not affine:
        raise ValueError("checkpoint='reversible' undoes steps, which gates do not allow; take checkpoint='sqrt'")
    if kind != "none" and memory:
        raise ValueError(f"checkpoint must be 'none' with lam=1, whose memories are not kept, not {kind!r}")


def of_ensemble(kind: str) -> None:
    """An ensemble keeps all states."""
    check.choice("checkpoint", kind, *CHECKPOINTS)
    if kind != "none":
        raise ValueError(f"checkpoint must be 'none' for an ensemble, not {kind!r}; call its members one by one")


def starts(dtype: str, shape: Shape, steps: int, batch: int, members: int | None = None) -> None:
    """Marks are bools, one for each step and sequence, for all members of an ensemble or for each."""
    if dtype != "bool":
        raise TypeError(f"starts must be bool, not {dtype}")
    if members is None or len(shape) == 2:
        check.exact("starts", shape, (steps, batch), "(T, B)")
    else:
        check.exact("starts", shape, (steps, members, batch), "(T, E, B)")


def start_state(starts: object, shape: Shape, sizes: tuple[int, int, int], members: int | None = None) -> None:
    """The state before marks, for these T, B and n: of each mark or for all of them, of each sequence or for all, and
    of each member of an ensemble or for all."""
    if starts is None:
        needs_starts()
    steps, batch, n = sizes
    whole = (steps, batch, n) if members is None else (steps, members, batch, n)
    own = whole[-len(shape) :]  # lengths first: to compare B with n would bind a graph to batches of another size
    if len(shape) == len(own) and shape == own:
        return
    fits = 0 < len(shape) == len(own) and shape[-1] == n and (len(shape) < len(whole) or shape[0] == steps)
    if not fits or any(size not in (right, 1) for size, right in zip(shape, own, strict=True)):
        forms = "(T, B, n)" if members is None else "(T, E, B, n)"
        less = "(B, n)" if members is None else "(E, B, n), (B, n)"
        raise ValueError(f"start_state must have shape {forms} = {whole}, {less} or (n,), not {tuple(shape)}")


def needs_starts() -> NoReturn:
    """A state before marks without marks."""
    raise ValueError("start_state must not be given without starts, the reset mask that it belongs to")


def starts_served(*, gpu: bool) -> None:
    """Marks need the kernels of the CPU."""
    if gpu:
        raise NotImplementedError("backend='gpu' cannot serve starts: use backend='cpu'")


def on_the_device(output: str) -> None:
    """Arrays of the GPU have all states."""
    if output != "states":
        raise ValueError(f"output must be 'states' with arrays of the GPU, not {output!r}")


def other_states(step: str, share: float, left: list[str]) -> NoReturn:
    """The states differ from those of a recurrence with these arguments in this share of a step's entries."""
    raise ValueError(
        f"states must be what recurrence returns for the same arguments and keywords, but {share:.0%} of the entries "
        f"of the {step} step are not: was one of {', '.join(left)}, which have their default values here, given to it? "
        "(check_states=False lets them through)"
    )
