"""ONNX export of models that contain layers of `isometry.torch.nn`.

In a graph of `torch.export` a recurrence is one operator, `isometry::sequence` or `isometry::delta_rule`, which ONNX
does not know. Here it becomes torch's `scan` over the formula of its step, which torch translates to an ONNX Scan. W is
formed before, so that the file holds it as an initialiser.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from isometry.torch._cells import CELLS, NAMES
from isometry.torch._sequence_plan import SEQUENCE, decoded
from isometry.torch.formulas.delta import unit
from isometry.torch.nn._base import RecurrentLayer
from isometry.torch.nn._transition import TransitionLayer
from isometry.torch.operators.dense import Dense

__all__ = ["export"]

_W = "recurrent_matrix"


def export(
    model: nn.Module,
    args: tuple[Any, ...],
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    **options: Any,
) -> Any:
    """`torch.onnx.export(..., dynamo=True)` for a model that contains layers of `isometry.torch.nn`.

    Parameters
    ----------
    model : torch.nn.Module
        A layer, or a model with layers anywhere inside. It is not modified.
    args : tuple
        Arguments of a call of the model.
    f : path, optional
        The file to write.
    kwargs : dict, optional
        Keywords of that call.
    dynamic_shapes : optional
        The axes of any length, as `torch.export.export` takes them: for a layer
        ``{"input": {0: Dim("T", min=2), 1: Dim("B", min=2)}}``.
    **options
        Further keywords of `torch.onnx.export`.

    Returns
    -------
    torch.onnx.ONNXProgram

    Raises
    ------
    TypeError
        A layer with complex states: ONNX has no complex numbers.
    NotImplementedError
        A model that calls a layer with a PackedSequence, or a recurrence with lengths.

    Notes
    -----
    Needs the packages onnx and onnxscript. Every recurrence is a Scan over its steps, with all cells, activations,
    several layers and both directions; results are those of the layer up to rounding.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> from torch.export import Dim
    >>> layer, x = it.nn.ScoRNN(3, 8), torch.randn(20, 5, 3)
    >>> sizes = {"input": {0: Dim("T", min=2), 1: Dim("B", min=2)}}
    >>> program = export(layer, (x,), "layer.onnx", dynamic_shapes=sizes)  # doctest: +SKIP
    """
    program = torch.export.export(frozen(model), args, kwargs, dynamic_shapes=dynamic_shapes)
    # Else numbers that differ from those of an earlier export would become inputs of the steps, which ONNX refuses.
    with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
        program = program.run_decompositions(_IN_TORCH)
    return torch.onnx.export(program, args, f, kwargs=kwargs, dynamo=True, **options)


def frozen(model: nn.Module) -> nn.Module:
    """A copy of the model that trains nothing, whose layers hold W in place of its parameters.

    Raises
    ------
    TypeError
        A layer with complex states.
    """
    model = copy.deepcopy(model).requires_grad_(False)
    for name, layer in model.named_modules():
        if isinstance(layer, RecurrentLayer) and layer.is_complex:
            where = f" ({name})" if name else ""
            raise TypeError(
                f"{type(layer).__name__}{where} has complex states: ONNX has no complex numbers, export a real layer"
            )
        if isinstance(layer, TransitionLayer):
            _freeze(layer)
    return model


@torch.no_grad()
def _freeze(layer: TransitionLayer) -> None:
    """Replaces the parameters of W by W."""
    for suffix in layer._suffixes:
        weight = layer._transition(suffix).matrix()
        for name in (*layer._transition_shapes(), *layer._untrained):
            delattr(layer, name + suffix)
        layer.register_buffer(_W + suffix, weight.detach().clone())
    layer._transition = lambda suffix: Dense(getattr(layer, _W + suffix))  # type: ignore[method-assign]


def _scanned(
    cell: str,
    stem: str,
    activation: str,
    slope: float,
    settings: Sequence[float],
    reverse: bool,
    _checkpoint: str,
    last: bool,
    tensors: Sequence[Tensor | None],
    _backend: str | None,
    _saving: bool,
) -> list[Tensor]:
    """`isometry::sequence` as a scan of torch."""
    if tensors[-1] is not None:
        raise NotImplementedError("ONNX export needs sequences of one length, without lengths or a PackedSequence")
    assert stem in ("", "dense"), stem
    call, weight = decoded(cell, stem, activation, slope, settings, reverse), tensors[-2] if stem else None
    tensors = tensors[: len(NAMES[cell])]
    if cell == "gru":  # a view of the matrices of the gates beside them would be an alias, which scan refuses
        weight = tensors[1][2].clone()  # type: ignore[index]
    drive, start, step = CELLS[cell].formula(call.law, weight, *tensors)

    def body(carried: tuple[Tensor, ...], drive: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        new = step(drive, carried)
        return new, new[0].clone()

    end, states = scan(body, tuple([t.clone() for t in start]), drive, reverse=reverse)
    result = states[0 if reverse else -1].clone() if last else states
    return [result, *end[1 : SEQUENCE.count(call)], torch.zeros((), dtype=torch.bool)]


def _delta_scanned(
    m: int, scale: float, normalise: bool, tensors: Sequence[Tensor | None], _backend: str | None, _saving: bool
) -> list[Tensor]:
    """`isometry::delta_rule`, as a layer calls it, as a scan of torch."""
    q, k, v, beta, g, state, ends = tensors
    if ends is not None:
        raise NotImplementedError("ONNX export needs sequences of one length, without cu_seqlens or a PackedSequence")
    assert q is not None and k is not None and v is not None and beta is not None
    if normalise:
        q, k = unit(q), unit(k)
    group = v.shape[2] // q.shape[2]
    q, k = (x.repeat_interleave(group, 2) if group > 1 else x for x in (q, k))
    if g is None:
        g = torch.zeros_like(q[..., 0])
    if state is None:
        state = (k[:, 0].unsqueeze(-1) * v[:, 0].unsqueeze(-2)) * 0

    def body(state: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        q, k, v, beta, g = now
        state = (g.unsqueeze(-1) if g.ndim == 3 else g[..., None, None]).exp() * state
        for j in range(m):
            key, rate = k[:, j].unsqueeze(-1), beta[:, j, :, None, None]
            state = state + rate * key * (v[:, j].unsqueeze(-2) - (key * state).sum(-2, keepdim=True))
        return state, scale * (q.unsqueeze(-1) * state).sum(-2)

    rows = [x.unflatten(1, (-1, m)).transpose(0, 1).clone() for x in (k, v, beta)]
    given = (q.transpose(0, 1).clone(), *rows, g.transpose(0, 1).clone())
    state, out = scan(body, state.clone(), given)
    return [out.transpose(0, 1).clone(), state, torch.zeros((), dtype=torch.bool)]


#: The operators that ONNX does not know, in others.
_IN_TORCH = {
    torch.ops.isometry.sequence.default: _scanned,
    torch.ops.isometry.delta_rule.default: _delta_scanned,
    torch.ops.aten.hypot.default: lambda a, b: (a * a + b * b).sqrt(),
}
