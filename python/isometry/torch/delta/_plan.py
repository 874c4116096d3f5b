"""The kernel call of `delta_rule`."""

# ruff: noqa: ARG002  the interface of `Plan`

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor
from torch.autograd.graph import increment_version

from ... import _core
from ..._rules import check_delta
from .._dispatch.function import arrays, empty, empty_gradients, place, readable
from .._dispatch.graph import custom_operators
from .._dispatch.plan import Flags, Out, Plan, Results, Rows, Saved, Tensors
from ..formulas import delta


class Options(NamedTuple):
    """The arguments that are no arrays of numbers."""

    householders: int
    scale: float
    normalise: bool
    more: int = 0  # states behind those that are saved; with 2 of them no size is 0 or 1, which a graph would ask


class DeltaRule(Plan):
    """Outputs and states, from six tensors and the ends of the sequences; saved are the states that backward needs.

    On the GPU it computes them again, which takes less time than to copy them.
    """

    place = staticmethod(place)

    operators = custom_operators(
        "delta_rule",
        "int householders, float scale, bool normalise",
        lambda m, scale, normalise: (DELTA_RULE, Options(m, scale, normalise, more=2)),
    )

    def encoded(self, settings: Any) -> Any:
        # torch 2.8 traces no slice of a named tuple
        return settings.householders, settings.scale, settings.normalise

    def count(self, settings: Any) -> int:
        return 2

    def shapes(self, settings: Any, tensors: Tensors, saving: bool) -> Sequence[Any]:
        q, _, v, *_, ends = tensors
        batch, tokens, _, key = q.shape
        value_heads, value = v.shape[2:]
        out, count = (batch, tokens, value_heads, value), batch if ends is None else ends.shape[0] - 1
        results = out, (count, value_heads, key, value)
        if not saving:
            return results
        first, count, *rest = check_delta.saved(out, key, settings.householders)
        return *results, (first, count + settings.more, *rest)

    def run(self, settings: Any, tensors: Tensors, saving: bool, at: Any) -> tuple[Results, Saved]:
        shapes, dtype = self.shapes(settings, tensors, saving), tensors[0].dtype
        (o, of_o), (state, of_state) = empty(shapes[0], dtype), empty(shapes[1], dtype)
        saved, of_saved = empty(shapes[2], dtype) if saving and at != "gpu" else (None, None)
        if saved is not None and settings.more:
            saved.zero_()  # an operator returns the same numbers each time
        _core.delta_rule(_read(settings, tensors), (of_o, of_state, _states(settings, of_saved), False), at)
        return (o, state), (saved,)

    def pull(self, settings: Any, tensors: Tensors, out: Out, wanted: Flags, at: Any) -> Tensors:
        _, saved, cts = out
        grads, bars = empty_gradients(wanted, tensors)
        states = None if at == "gpu" else _states(settings, readable(saved[0]))
        _core.delta_rule_vjp(_read(settings, tensors), states, arrays(cts), bars[:-1], at)
        return grads

    def formula(self, settings: Any, *tensors: Any) -> Results:
        *rest, ends = tensors
        return delta.delta_rule(*rest, None if ends is None else ends.tolist(), *self.encoded(settings))  # type: ignore[call-arg]

    def rows(self, settings: Any, batched: Sequence[int], tensors: Tensors) -> Rows | None:
        # Sequences that follow each other are a batch of 1.
        return Rows((0,) * len(tensors), (0, 0, 0), True) if tensors[-1] is None else None


DELTA_RULE: Plan = DeltaRule("DeltaRule")


def written(options: Options, tensors: Tensors, state: Tensor, threads: int) -> Tensor:
    """The outputs of the kernel alone, on the CPU; it writes the last states to a tensor, perhaps that of the first."""
    initial = tensors[5]
    continued = initial is not None and initial.data_ptr() == state.data_ptr() and initial.is_contiguous()
    if continued:
        tensors = (*tensors[:5], None, *tensors[6:])
    out = DELTA_RULE.shapes(options, tensors, False)[0]
    o, of_o = empty(out, state.dtype)
    _core.delta_rule(_read(options, tensors), (of_o, readable(state), None, continued), threads)
    if not state.is_inference():  # else autograd takes what it has saved of it for unchanged
        increment_version(state)
    return o


def _states(options: Options, saved: Any) -> Any:
    """The part of what is saved that a kernel takes."""
    if saved is None or not options.more:
        return saved
    first, count, *rest = saved.shape
    shape = first, count - options.more, *rest
    return saved.reshape(-1)[: math.prod(shape)].reshape(shape)


def _read(options: Options, tensors: Tensors) -> Any:
    """The arguments as the kernel takes them."""
    ends, (m, scale, normalise, _) = tensors[-1], options
    return arrays(tensors[:-1]), None if ends is None else ends.numpy(force=True), m, scale, normalise
