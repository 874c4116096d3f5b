"""flash-linear-attention's kernels for the delta rule on CUDA, where it is installed.

They take half precision only, and have no second derivatives: those are of the formula, in float32.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._dispatch.device import computed_there
from .._dispatch.function import HALF
from .._dispatch.mode import DEVICE, mode
from ._plan import DELTA_RULE, Options

#: The largest key of its kernels.
_KEY = 256
#: Its oldest release that is called: earlier ones had other layouts.
_OLDEST = (0, 5)


def computed(options: Options, tensors: Sequence[Any], ends: Tensor | None) -> tuple[Tensor, ...] | None:
    """Outputs and states by the library; None where it is missing, or does not compute these arguments."""
    q, k, v, *_ = tensors
    if not q.is_cuda or q.dtype not in HALF or not q.dtype is k.dtype is v.dtype or mode(*tensors) is not DEVICE:
        return None
    name = _name(options, tensors)
    empty = not (q.numel() and v.numel()) or (ends is not None and any(a == b for a, b in pairwise(ends.tolist())))
    if name is None or empty or q.shape[3] > _KEY or _function(name) is None:
        return None
    return computed_there(_LibraryCall(name, options, ends), tensors)


def _name(options: Options, tensors: Sequence[Any]) -> str | None:
    """Its function for these arguments."""
    q, _, v, _, g, _ = tensors
    grouped, m = q.shape[2] != v.shape[2], options.householders
    if g is not None and g.ndim == 4:
        return "kda.chunk_kda" if m == 1 else None
    if m > 1:
        return None if grouped else "gated_delta_product.chunk_gated_delta_product"
    if g is not None:
        return "gated_delta_rule.chunk_gated_delta_rule"
    return None if grouped else "delta_rule.chunk_delta_rule"


@cache
def _function(name: str) -> Callable[..., Any] | None:
    """None where it does not load, for whatever reason."""
    module, function = name.split(".")
    try:
        known = tuple(map(int, importlib.import_module("fla").__version__.split(".")[:2])) >= _OLDEST
        return getattr(importlib.import_module(f"fla.ops.{module}"), function, None) if known else None
    except Exception:
        return None


class _LibraryCall(NamedTuple):
    """A call of one of its functions."""

    name: str
    options: Options
    ends: Tensor | None

    def run(self, given: Sequence[Any], saving: bool) -> tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]:
        """Outputs and states; saved is its own graph, by its ends."""
        if not saving:
            return self._called(given), ()
        with torch.enable_grad():
            leaves = [t if t is None else t.detach().requires_grad_(t.requires_grad) for t in given]
            ends = self._called(leaves)
        # `data`: what a user writes to the results is no change of the graph
        return tuple([t.data for t in ends]), (*ends, *leaves)

    def pull(
        self, given: Sequence[Any], saved: Sequence[Any], wanted: Sequence[bool], cts: Sequence[Any]
    ) -> list[Tensor | None]:
        """The wanted gradients, by its backward pass."""
        del given
        ends, leaves = saved[:2], saved[2:]
        own = [t for t, w in zip(leaves, wanted, strict=True) if w]
        grads = iter(torch.autograd.grad(ends, own, cts, retain_graph=True, allow_unused=True))
        return [next(grads) if w else None for w in wanted]

    def formula(self, *given: Any) -> tuple[Tensor, ...]:
        """The same in float32."""
        o, state = DELTA_RULE.formula(self.options, *[t if t is None else t.float() for t in given], self.ends)
        return o.to(given[2].dtype), state

    def _called(self, given: Sequence[Any]) -> tuple[Tensor, ...]:
        (q, k, v, beta, g, state), (m, scale, normalise, _) = given, self.options
        function = _function(self.name)
        assert function is not None
        more: dict[str, Any] = {} if g is None else {"g": g.float()}
        if m > 1:
            more = {"g": None, "num_householder": m} | more
        o, state = function(
            q=q, k=k, v=v, beta=beta, scale=scale, initial_state=None if state is None else state.float(),
            output_final_state=True, use_qk_l2norm_in_kernel=normalise,
            cu_seqlens=None if self.ends is None else self.ends.to(q.device, torch.int64), **more,
        )  # fmt: skip
        return o, state
