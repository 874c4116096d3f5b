"""torch's recurrent operators: the calls that these kernels compute, and torch's own way for all others.

A module passes the weights of all layers and directions as one list: W_ih, W_hh and, with biases, b_ih, b_hh of each.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import Parameter

from isometry.torch._dispatch.private import dispatch_modes, forward_mode, tracing_state, transforms_active

from ._layers import KINDS, Call, Kind, one_layer, results
from ._rule import pays

#: Where kernels are registered: inference tensors, others, and batches of torch.func, which have no way to torch's own
#: composition where another key has a kernel.
KEYS = ("CPU", "AutogradCPU", "FuncTorchBatched")
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
#: Steps, sequences, whether they are packed, and whether the kernels take all calls that they can.
Sizes: TypeAlias = tuple[int, int, bool, bool]
_LAW = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


class Operator(NamedTuple):
    """An operator of torch, and its call by these kernels."""

    name: str
    key: str
    schema: str
    computed: Callable[[Any, bool], Any]
    """The results, or None where torch computes."""

    @property
    def cell(self) -> bool:
        """Whether it is one step."""
        return self.name.endswith("_cell")

    def _parts(self) -> tuple[str, str]:
        stem, _, overload = self.name.partition(".")
        return stem, overload

    def check(self) -> None:
        """Refuse an operator that is not the known one, or has a kernel."""
        try:
            found = str(torch._C._get_schema(f"aten::{self._parts()[0]}", self._parts()[1]))
        except RuntimeError:
            found = "no such operator"
        if found != self.schema:
            raise RuntimeError(f"aten::{self.name} of torch {torch.__version__} is not the known one: {found}")
        for key in KEYS:
            if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{self.name}", key):
                raise RuntimeError(f"another package has registered a kernel over aten::{self.name} ({key})")

    def by_torch(self) -> Callable[..., Any]:
        """torch's own composition."""
        stem, overload = self._parts()
        found: Any = getattr(getattr(torch.ops.aten, stem), overload or "default")
        return lambda *given: found._op_dk(_COMPOSITE, *given)


def traced(x: Tensor) -> bool:
    """Whether torch records the operations of a call on this input, which is then nobody's."""
    return dispatch_modes() > 0 or tracing_state() is not None or type(x) not in _PLAIN


_REAL = (torch.float32, torch.float64)
#: Subclasses have no memory that a kernel could read.
_PLAIN = {Tensor, Parameter}


def _ours(tensors: Sequence[Tensor]) -> bool:
    """Whether nothing but autograd observes a call on these tensors, whose numbers are in their memory."""
    if transforms_active() or forward_mode._current_level >= 0 or dispatch_modes() or tracing_state() is not None:
        return False
    return _PLAIN.issuperset(map(type, tensors)) and not any(map(Tensor.is_neg, tensors))


def _recorded(tensors: Sequence[Tensor]) -> bool:
    """Whether a call on these tensors has gradients."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors) and not torch.is_inference_mode_enabled()


def _call(
    kind: Kind, x: Tensor, states: Any, weights: Sequence[Tensor], law: Sequence[Any], sizes: Sizes
) -> Call | None:
    """A call for these kernels, if its tensors fit one another; else None: torch computes or refuses it."""
    biases, layers, dropout, train, bidirectional = law
    steps, batch, packed, always = sizes
    held = tuple(states) if kind.parts == 2 else (states,)
    directions, each, count = 1 + bidirectional, 4 if biases else 2, layers * (1 + bidirectional)
    n, features, dtype = held[0].shape[-1] if held and held[0].dim() else 0, x.shape[-1], x.dtype
    tensors = x, *held, *weights
    recorded = _recorded(tensors)
    if not (always or pays(kind, steps, batch, features, n, recorded, len(x) * packed)):
        return None
    if len(held) != kind.parts or len(weights) != each * count or 0 in (n, features, batch, count, len(x)):
        return None
    if dtype not in _REAL or torch.is_autocast_enabled("cpu"):
        return None
    if not _ours(tensors):
        return None
    return Call(kind, held, weights, each, directions, dropout if train else 0.0, n, recorded)


def _of_padded(kind: Kind) -> Callable[[Any, bool], Any]:
    def computed(given: Any, always: bool) -> Any:
        x, states, weights, *law, batch_first = given
        if x.dim() != 3:
            return None
        batch, steps, _ = x.shape if batch_first else (x.shape[1], x.shape[0], 0)
        x = x.transpose(0, 1) if batch_first else x
        call = _call(kind, x, states, weights, law, (steps, batch, False, always))
        if call is None:
            return None
        found = results(x, call)
        return (found[0].transpose_(0, 1), *found[1:]) if found is not None and batch_first else found  # no views

    return computed


def _of_packed(kind: Kind) -> Callable[[Any, bool], Any]:
    def computed(given: Any, always: bool) -> Any:
        x, sizes, states, weights, *law = given
        if (
            x.dim() != 2
            or type(sizes) not in _PLAIN
            or sizes.dim() != 1
            or not sizes.is_cpu
            or sizes.dtype is not torch.int64
        ):
            return None
        counts = sizes.tolist()
        if not counts or sum(counts) != len(x) or any(map(int.__lt__, counts, (*counts[1:], 1))):
            return None
        call = _call(kind, x, states, weights, law, (len(counts), counts[0], True, always))
        return None if call is None else results(x, call, counts)

    return computed


def _of_step(kind: Kind) -> Callable[[Any, bool], Any]:
    def computed(given: Any, always: bool) -> Any:
        if not always:
            return None
        x, states, *weights = given
        weights = [t for t in weights if t is not None]
        found = _after(kind, x, states, weights) if x.dim() == 2 and len(weights) in (2, 4) else None
        if found is None:
            found = _after_recorded(kind, x, states, weights)
        return found if found is None or kind.parts == 2 else found[0]

    return computed


def _after(kind: Kind, x: Tensor, states: Any, weights: Sequence[Tensor]) -> tuple[Tensor, ...] | None:
    """The parts of the state after one step without gradients, from x (B, d); None where `_call` decides."""
    held = tuple(states) if kind.parts == 2 else (states,)
    tensors = x, *held, *weights
    if len(held) != kind.parts or held[0].dim() + held[-1].dim() != 4:
        return None
    if _recorded(tensors) or not _ours(tensors) or torch.is_autocast_enabled("cpu"):
        return None
    return one_layer(kind, x, held, weights, None)


def _after_recorded(kind: Kind, x: Tensor, states: Any, weights: Sequence[Tensor]) -> tuple[Tensor, ...] | None:
    """The same for x (B, d) with gradients."""
    held = tuple(states) if kind.parts == 2 else (states,)
    if x.dim() != 2 or any(t.dim() != 2 for t in held) or len(weights) not in (2, 4):
        return None
    own: Any = [t.unsqueeze(0) for t in held]
    own = own if kind.parts == 2 else own[0]
    law = len(weights) == 4, 1, 0.0, False, False
    call = _call(kind, x.unsqueeze(0), own, weights, law, (1, len(x), False, True))
    if call is None:
        return None
    found = results(x.unsqueeze(0), call)
    return None if found is None else tuple([t.squeeze_(0) for t in found[1:]])  # in place: no views


def _operators() -> list[Operator]:
    made = []
    for name, kind in KINDS.items():
        pair, key = kind.parts == 2, name.partition("_")[0]
        hx, all_ = f"Tensor{'[]' * pair} hx", ", ".join(["Tensor"] * (1 + kind.parts))
        law = f"{hx}, Tensor[] params, {_LAW}"
        for suffix, arguments, result, computed in (
            (".input", f"Tensor input, {law}, bool batch_first", f"({all_})", _of_padded),
            (".data", f"Tensor data, Tensor batch_sizes, {law}", f"({all_})", _of_packed),
            ("_cell", f"Tensor input, {hx}, {_CELL}", "(Tensor, Tensor)" if pair else "Tensor", _of_step),
        ):
            own = f"{key}_cell" if suffix == "_cell" else key
            schema = f"aten::{name}{suffix}({arguments}) -> {result}"
            made.append(Operator(name + suffix, own, schema, computed(kind)))
    return made


#: Those of the layers, padded and packed, and of the cells.
OPERATORS = _operators()
