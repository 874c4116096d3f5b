"""torch's recurrent operators: which calls these kernels compute, and what they compute for each.

A module passes the weights of all layers and directions as one list, W_ih, W_hh and, with biases, b_ih, b_hh of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from isometry.torch._dispatch.mode import RECORDED, mode
from isometry.torch._dispatch.private import dispatch_modes, forward_mode, tracing_state, transforms_active

from ._layers import KINDS, Kind, packed, padded, step
from ._rule import pays

#: Where kernels are registered: inference tensors, others, and batches of torch.func, which have no way to torch's own
#: composition where another key has a kernel.
KEYS = ("CPU", "AutogradCPU", "FuncTorchBatched")
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_SEQUENCE = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


class Computed:
    """How many calls were computed, by these kernels and by torch, and whether the kernels take all that they can."""

    def __init__(self) -> None:
        self.always = False
        self._lock = Lock()
        self._counts = {key: [0, 0] for key in ("lstm", "gru", "rnn", "lstm_cell", "gru_cell", "rnn_cell")}

    def add(self, key: str, ours: bool) -> None:
        """One more call."""
        with self._lock:
            self._counts[key][not ours] += 1

    def now(self) -> dict[str, tuple[int, int]]:
        """The counts up to now."""
        with self._lock:
            return {key: (ours, theirs) for key, (ours, theirs) in self._counts.items()}


class Operator(NamedTuple):
    """An operator of torch, and its call by these kernels."""

    name: str
    key: str
    schema: str
    computed: Callable[[Any, bool], Any]
    """The results, or None where torch computes."""

    def check(self) -> None:
        """Refuse an operator that is not the known one."""
        stem, _, overload = self.name.partition(".")
        try:
            found = str(torch._C._get_schema(f"aten::{stem}", overload))
        except RuntimeError:
            found = "no such operator"
        if found != self.schema:
            raise RuntimeError(f"aten::{self.name} of torch {torch.__version__} is not the known one: {found}")
        for key in KEYS:
            if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{self.name}", key):
                raise RuntimeError(f"another package has registered a kernel over aten::{self.name} ({key})")

    def by_torch(self, *given: Any) -> Any:
        """torch's own results."""
        stem, _, overload = self.name.partition(".")
        return getattr(getattr(torch.ops.aten, stem), overload or "default")._op_dk(_COMPOSITE, *given)

    @staticmethod
    def traced(given: Sequence[Any]) -> bool:
        """Whether torch records the operations of a call, which is then nobody's."""
        flat = [t for part in given for t in (part if isinstance(part, list | tuple) else (part,))]
        return dispatch_modes() > 0 or tracing_state() is not None or not all(_plain(t) for t in flat if isinstance(t, Tensor))


def _plain(t: Any) -> bool:
    return type(t) is Tensor or type(t) is Parameter


def _alike(x: Any, others: Sequence[Any]) -> bool:
    """Whether these are dense tensors on the CPU of one precision, and no mode of torch observes or replaces them."""
    if transforms_active() or forward_mode._current_level >= 0 or dispatch_modes() or tracing_state() is not None:
        return False
    dtype = x.dtype
    if (dtype is not torch.float32 and dtype is not torch.float64) or torch.is_autocast_enabled("cpu"):
        return False
    for t in (x, *others):
        if not (
            (type(t) is Tensor or type(t) is Parameter)
            and t.dtype is dtype
            and t.is_cpu
            and t.layout is torch.strided
        ):
            return False
    return True


class Call(NamedTuple):
    """A call over sequences that fits the kernels."""

    kind: Kind
    states: tuple[Tensor, ...]  #: of all layers and directions, (layers * directions, B, n) each
    each: list[tuple[Tensor, ...]]  #: the weights of each
    directions: int
    dropout: float


def _call(
    kind: Kind, x: Tensor, batch: int, states: Any, params: Any, law: tuple[bool, int, float, bool, bool]
) -> Call | None:
    """A call whose shapes fit, or None: torch computes or refuses it."""
    has_biases, layers, dropout, train, bidirectional = law
    held = tuple(states) if kind.parts == 2 else (states,)
    if len(held) != kind.parts or not _alike(x, (*held, *params)):
        return None
    directions, own = 1 + bidirectional, 4 if has_biases else 2
    count = layers * directions
    n = held[0].shape[-1]
    if len(params) != own * count or any(t.shape != (count, batch, n) for t in held) or 0 in (*x.shape, n, count):
        return None
    each, rows = [], kind.gates * n
    for i in range(count):
        part = tuple(params[i * own : (i + 1) * own])
        features = x.shape[-1] if i < directions else directions * n
        if part[0].shape != (rows, features) or part[1].shape != (rows, n):
            return None
        if has_biases and not part[2].shape == part[3].shape == (rows,):
            return None
        each.append(part)
    return Call(kind, held, each, directions, dropout if train else 0.0)


def _recorded(call: Call, x: Tensor) -> bool:
    return mode(x, *call.states, *[t for part in call.each for t in part]) is RECORDED


def _of_padded(kind: Kind) -> Callable[[Any, bool], Any]:
    def computed(given: Any, always: bool) -> Any:
        x, states, params, *law, batch_first = given
        if x.dim() != 3:
            return None
        x = x.transpose(0, 1) if batch_first else x
        call = _call(kind, x, x.shape[1], states, params, tuple(law))
        if call is None or not (always or pays(kind, x.shape, call.states[0].shape[-1], _recorded(call, x), False)):
            return None
        output, last = padded(x, call)
        return output.transpose(0, 1) if batch_first else output, *last

    return computed


def _of_packed(kind: Kind) -> Callable[[Any, bool], Any]:
    def computed(given: Any, always: bool) -> Any:
        data, sizes, states, params, *law = given
        if data.dim() != 2 or not _plain(sizes) or sizes.dim() != 1 or not sizes.is_cpu or not len(sizes):
            return None
        rows = sizes.tolist()
        if sum(rows) != len(data) or any(a < b for a, b in zip(rows, (*rows[1:], 1), strict=True)):
            return None
        call = _call(kind, data, rows[0], states, params, tuple(law))
        shape = len(rows), rows[0], data.shape[1]
        if call is None or not (always or pays(kind, shape, call.states[0].shape[-1], _recorded(call, data), True)):
            return None
        return packed(data, sizes, shape[:2], call)

    return computed


def _of_step(kind: Kind) -> Callable[[Any, bool], Any]:
    def computed(given: Any, always: bool) -> Any:
        x, states, *weights = given
        weights += [None] * (4 - len(weights))
        held = tuple(states) if kind.parts == 2 else (states,)
        own = tuple([t for t in weights if t is not None])
        if x.dim() != 2 or len(held) != kind.parts or len(own) == 3 or not _alike(x, (*held, *own)):
            return None
        (batch, features), n = x.shape, held[0].shape[-1]
        rows = kind.gates * n
        fits = all(t.shape == (batch, n) for t in held) and 0 not in (batch, features, n)
        if not fits or own[0].shape != (rows, features) or own[1].shape != (rows, n):
            return None
        if any(t.shape != (rows,) for t in own[2:]):
            return None
        recorded = mode(x, *held, *own) is RECORDED
        if not (always or pays(kind, (1, batch, features), n, recorded, False)):
            return None
        found = step(kind, x, held, own)
        return found if kind.parts == 2 else found[0]

    return computed


def _operators() -> list[Operator]:
    made = []
    for name, kind in KINDS.items():
        hx = "Tensor[] hx" if kind.parts == 2 else "Tensor hx"
        results = ", ".join(["Tensor"] * (1 + kind.parts))
        key = name.partition("_")[0]
        input_ = f"aten::{name}.input(Tensor input, {hx}, Tensor[] params, {_SEQUENCE}, bool batch_first) -> ({results})"
        data = f"aten::{name}.data(Tensor data, Tensor batch_sizes, {hx}, Tensor[] params, {_SEQUENCE}) -> ({results})"
        cell = f"aten::{name}_cell(Tensor input, {hx}, {_CELL}) -> {'(Tensor, Tensor)' if kind.parts == 2 else 'Tensor'}"
        made += [
            Operator(f"{name}.input", key, input_, _of_padded(kind)),
            Operator(f"{name}.data", key, data, _of_packed(kind)),
            Operator(f"{name}_cell", f"{key}_cell", cell, _of_step(kind)),
        ]
    return made


OPERATORS = _operators()
