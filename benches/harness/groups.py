"""The list of groups; imports nothing, since the parser reads it to show their names."""

_OPERATORS, _RECURRENCES, _CELLS = (f"rows.torch.{name}:" for name in ("operators", "recurrences", "cells"))
#: The functions that yield the rows of a group of the README, as module:name.
SHOWN: dict[str, tuple[str, ...]] = {
    "recurrence": (_RECURRENCES + "papers",),
    "gru": (_CELLS + "gru",),
    "goru": (_CELLS + "goru",),
    "rum": (_CELLS + "rum",),
    "heads": ("rows.torch.heads:rows",),
    "delta": ("rows.torch.delta:delta", "rows.torch.delta_figures:figures"),
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
    "hadamard": ("rows.torch.hadamard:transforms",),
    "small": (_OPERATORS + "small",),
    "dropin": (
        *(f"rows.torch.dropin.{name}:rows" for name in ("parametrizations", "linalg", "adapters", "func", "step")),
        "rows.torch.dropin.checkpoint:rows",
        *(f"rows.torch.dropin.layers:{name}" for name in ("from_torch", "starts", "last_states")),
    ),
}
GROUPS = (
    SHOWN
    | {
        name: (f"rows.{name}:rows",)
        for name in ("compiled", "training", "memory", "overhead", "qwen", "gpu", "engines")
    }
    | {
        "rivals": (_CELLS + "rivals",),
        "one": ("rows.torch.one:rows",),
        "rl": ("rows.agents:rows",),
        "published": ("rows.torch.dropin.layers:published",),
        "within": ("rows.torch.dropin.layers:within",),
    }
)
#: Groups that need no torch and measure themselves: the function that returns the entries for some settings.
APART = {"numpy": "rows.numpy.process:entries"}
NAMES = (*GROUPS, *APART)
# Run only if they are named: they need other packages, an adapter, or have no bar.
NAMED = ("qwen", "rl", "gpu", "one", "published", "within", "engines")
CORES = (*SHOWN, "one")  # what `--cores` times
