"""Which kernels a computation of the torch face calls, and where they run."""

from typing import NamedTuple

from torch import Tensor
from torch.utils._pytree import tree_leaves

from isometry import _core
from isometry.torch._dispatch import function

KERNELS = [
    f"{name}{way}"
    for name in (
        "operator_matrix",
        "operator_apply",
        "sequence",
        "activate",
        "delta_rule",
        "linalg_product",
        "linalg_apply",
        "linalg_geqrf",
        "blocks_apply",
    )
    for way in ("", "_vjp")
]


class Call(NamedTuple):
    """A kernel, its first argument (the name of an object where it takes one), and the backend.

    A sequence is named by its cell, "ensemble" behind it where it has members, and its first
    argument is the object of its operator.
    """

    kernel: str
    first: object
    backend: str


class Calls(list):
    """The calls that were made."""

    def taken(self):
        """Those since the last time."""
        taken = Calls(self)
        self.clear()
        return taken

    @property
    def backends(self):
        return {call.backend for call in self}

    def of(self, kernel):
        """(first argument, backend) of the calls of a kernel."""
        return [(call.first, call.backend) for call in self if call.kernel == kernel]


def recorded(monkeypatch):
    """The calls from now on."""
    calls = Calls()

    def watched(name, kernel):
        def call(*arguments, **more):
            backend = "gpu" if any(a == "gpu" for a in arguments if type(a) is str) else "cpu"
            own, first = name, arguments[0]
            if name.startswith("sequence"):
                own = first + ("" if arguments[-1] is None else "_ensemble") + name.removeprefix("sequence")
                first = arguments[1] and arguments[1][0]
            calls.append(Call(own, first, backend))
            assert function._DIRECT or not any(isinstance(a, Tensor) for a in tree_leaves(arguments)), name
            return kernel(*arguments, **more)

        return call

    for name in KERNELS:
        monkeypatch.setattr(_core, name, watched(name, getattr(_core, name)))
    return calls
