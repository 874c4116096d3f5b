"""The kernel calls of linalg.

Arrays come with no batch axis or with one, all of one dtype; the settings are the name of the function and its flags.
"""

# ruff: noqa: ARG002  the interface of `Plan`

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from ... import _core
from .._dispatch.function import arrays, empty, empty_gradients
from .._dispatch.graph import custom_operators
from .._dispatch.mode import mode
from .._dispatch.plan import Flags, Out, Plan, Results, Saved, Tensors
from .._dispatch.results import computed
from ..formulas import linalg as formulas


class Function(NamedTuple):
    """One function of linalg."""

    shapes: Callable[..., Sequence[tuple[int, ...]]]  # of the results, from the tensors
    formula: Callable[..., Any]  # of the tensors and the flags
    reads: bool = False  # whether the gradient reads both results, in place of the tensors


#: By the name of the kernel.
FUNCTIONS = {
    "product": Function(lambda a, _tau: [a.shape], formulas.product),
    "apply": Function(lambda _a, _tau, x: [x.shape], formulas.apply),
    "geqrf": Function(lambda x: [x.shape, (*x.shape[:-2], min(x.shape[-2:]))], formulas.geqrf, reads=True),
}


class Linalg(Plan):
    """A function of linalg."""

    rank = 2

    operators = custom_operators("linalg", "str name, bool[] flags", lambda *settings: (LINALG, settings))

    def count(self, settings: Any) -> int:
        return 1 + FUNCTIONS[settings[0]].reads

    def kept(self, settings: Any, results: Tensors) -> Tensors:
        return results if FUNCTIONS[settings[0]].reads else ()

    def shapes(self, settings: Any, tensors: Tensors, saving: bool) -> Sequence[Any]:
        return FUNCTIONS[settings[0]].shapes(*tensors)

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Any) -> tuple[Results, Saved]:
        name, flags = settings
        dtype = self.lead(tensors).dtype
        made = [empty(shape, dtype) for shape in FUNCTIONS[name].shapes(*tensors)]
        getattr(_core, f"linalg_{name}")(*arrays(tensors), *flags, *[array for _, array in made], at)
        return tuple([t for t, _ in made]), ()

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Any) -> Tensors:
        (name, flags), (results, _, cts) = settings, out
        # a and tau together: their gradients share nearly all work
        both = any(wanted[:2])
        grads, bars = empty_gradients([both, both, *wanted[2:]][: len(wanted)], tensors)
        getattr(_core, f"linalg_{name}_vjp")(*arrays(results or tensors), *arrays(cts), *flags, *bars, at)
        return [grad if w else None for grad, w in zip(grads, wanted, strict=True)]

    def formula(self, settings: Any, *tensors: Any) -> Results:
        name, flags = settings
        out = FUNCTIONS[name].formula(*tensors, *flags)
        return out if isinstance(out, tuple) else (out,)


LINALG: Plan = Linalg("Linalg")


def call(name: str, tensors: tuple[Tensor, ...], *flags: bool) -> Results:
    """The results of a call, in the mode of its tensors."""
    return computed(LINALG, mode(*tensors), None, (name, flags), tensors)
