"""The list of groups; imports nothing, since the parser reads it to show their names."""

from __future__ import annotations

_OPERATORS, _RECURRENCES, _CELLS = (
    f"isometry.cli.bench.{name}:" for name in ("torch.operators", "torch.recurrences", "torch.cells")
)
#: The functions that yield the rows of a group, as module:name. Scripts add their own groups before they call `main`.
GROUPS: dict[str, tuple[str, ...]] = {
    "recurrence": (_RECURRENCES + "papers",),
    "gru": (_CELLS + "gru",),
    "goru": (_CELLS + "goru",),
    "rum": (_CELLS + "rum",),
    "delta": ("isometry.cli.bench.torch.delta:delta",),
    "householder": (_OPERATORS + "householder",),
    "apply": (_OPERATORS + "apply",),
    "cayley": (_OPERATORS + "cayley",),
    "batches": (_OPERATORS + "batches",),
    "kronecker": (_OPERATORS + "kronecker", _RECURRENCES + "kronecker"),
    "rotation": (_OPERATORS + "rotation",),
    "bounded_svd": (_OPERATORS + "bounded_svd",),
    "exponential": (_OPERATORS + "exponential",),
    "fourier": (_OPERATORS + "fourier", _RECURRENCES + "fourier"),
    "mesh": (_OPERATORS + "mesh", _RECURRENCES + "mesh"),
    "hadamard": ("isometry.cli.bench.torch.hadamard:transforms",),
    "small": (_OPERATORS + "small",),
    "dropin": tuple(
        f"isometry.cli.bench.torch.dropin.{name}:rows"
        for name in ("parametrizations", "linalg", "adapters", "func", "step", "checkpoint")
    ),
}
#: Groups that need no torch and measure themselves: the function that returns the entries for some settings, as
#: module:name. Only scripts add such groups.
APART: dict[str, str] = {}


def names() -> tuple[str, ...]:
    """The names of all groups."""
    return (*GROUPS, *APART)
