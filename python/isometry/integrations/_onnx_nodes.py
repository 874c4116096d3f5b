"""Recurrences as ONNX's own nodes: GRU and LSTM, of which a runtime has kernels.

A node gives h of every step, and c of an LSTM after the last alone. Where a graph reads more, the recurrence stays. So
does an RNN, whose Scan ONNX Runtime computes in less time than the node.
"""

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx

from isometry.torch.sequences._cells import NAMES

#: The gates z, r, h of a GRU, and i, f, g, o of an LSTM, which are i, o, f, g there.
_GATES = {"gru": (0, 1, 2), "lstm": (0, 3, 1, 2)}
#: The axes of W of one recurrence; of many, in one call, it has more.
_AXES = {"gru": 3, "lstm": 2}
_SEQUENCE = torch.ops.isometry.sequence.default


def substitute(module: fx.GraphModule) -> None:
    """Put nodes of ONNX in the place of the recurrences of a graph that they compute."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.target is not _SEQUENCE or not _fits(*node.args):
            continue
        results = {user.args[1]: user for user in node.users if user.users}
        if any(user.target is not operator.getitem for user in node.users) or results.keys() - {0}:
            continue
        if node.args[0] == "lstm" and not node.args[7]:
            if 0 not in results or not _read_parts(node, results[0]):
                continue
        else:
            node.target = computed
    graph.eliminate_dead_code()
    module.recompile()


def _fits(cell: str, _stem: str, activation: str, *rest: Any) -> bool:
    """Whether a node has this law, without marks and lengths, and kernels: those of double precision are rare."""
    *_, tensors, _backend, _saving = rest
    if cell not in _GATES or activation != "tanh" or any(t is not None for t in tensors[-3:]):
        return False
    x, w = (t.meta.get("val") for t in tensors[:2])
    known = isinstance(x, Tensor) and isinstance(w, Tensor)
    return known and x.dtype is torch.float32 and w.dim() == _AXES[cell]


def _read_parts(node: fx.Node, states: fx.Node) -> bool:
    """Replaces an LSTM of which h of every step, and h and c after the last, are read; False for one of which more
    is.
    """
    reverse, n = node.args[5], node.args[8][1].meta["val"].shape[-1]  # type: ignore
    parts: dict[fx.Node, int] = {}
    for user in states.users:
        where = tuple(user.args[1:])
        if user.target is torch.ops.aten.slice.Tensor and where in ((2, 0, n), (-1, 0, n)):
            parts[user] = 0
        elif user.target is torch.ops.aten.select.int and where == (0, 0 if reverse else -1):
            parts[user] = 1
        else:
            return False
    graph = states.graph
    with graph.inserting_before(node):
        pair = graph.call_function(lstm_parts, node.args, node.kwargs)
        found = [graph.call_function(operator.getitem, (pair, k)) for k in range(2)]
    for user, part in parts.items():
        user.replace_all_uses_with(found[part])
    return True


def computed(*arguments: Any) -> list[Tensor]:
    """`isometry::sequence` by a node."""
    cell, *_, last, _tensors, _backend, _saving = arguments
    states, *ends = _node(*arguments)
    return [torch.cat(ends, -1) if last else states] if cell == "lstm" else [ends[0] if last else states]


def lstm_parts(*arguments: Any) -> tuple[Tensor, Tensor]:
    """h of every step (T, B, n), and h and c after the last (B, 2 n)."""
    states, *ends = _node(*arguments)
    return states, torch.cat(ends, -1)


def _node(
    cell: str,
    _stem: str,
    _activation: str,
    _slope: float,
    settings: Sequence[float],
    reverse: bool,
    _checkpoint: str,
    _last: bool,
    tensors: Sequence[Tensor | None],
    *_: Any,
) -> list[Tensor]:
    """h of every step (T, B, n), and h, of an LSTM c too, after the last (B, n)."""
    given: dict[str, Any] = dict(zip(NAMES[cell], tensors, strict=False))
    x, h0, on_state = given["x"], given["h0"], given.get("hidden_bias")
    n, gates = given["w"].shape[-1], _GATES[cell]
    own = [None if (t := given[name]) is None else t.reshape(len(gates), n, -1) for name in ("w", "u", "b")]
    w, u, b = (None if t is None else torch.cat([t[k] for k in gates]) for t in own)
    assert w is not None and u is not None
    attributes: dict[str, Any] = {"direction": "reverse" if reverse else "forward", "hidden_size": int(n)}
    if cell == "gru":
        attributes["linear_before_reset"] = int(settings[0])
    steps, batch, _features = x.shape
    biases = None
    if b is not None or on_state is not None:
        rows = w.new_zeros(w.shape[0])
        of_state = rows if on_state is None else torch.cat((rows[:-n], on_state))
        biases = torch.cat((rows if b is None else b.flatten(), of_state)).unsqueeze(0)
    parts = 2 if cell == "lstm" else 1
    starts = [None] * parts if h0 is None else h0.expand(batch, parts * n).split(n, -1)
    first = [None if t is None else t.unsqueeze(0).contiguous() for t in starts]
    states, *ends = torch.onnx.ops.symbolic_multi_out(
        f"::{cell.upper()}",
        (x, u.unsqueeze(0), w.unsqueeze(0), biases, None, *first),
        attributes,
        dtypes=[x.dtype] * (1 + parts),
        shapes=[(steps, 1, batch, n), *[(1, batch, n)] * parts],
    )
    return [states.squeeze(1), *(end.squeeze(0) for end in ends)]
