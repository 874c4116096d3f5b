"""ONNX export of models that contain layers, operators, adapters or orthogonal weights of `isometry.torch`.

ONNX does not know the operators `isometry::...` of a graph of `torch.export`. Here W is formed where an operator is
applied, or steps, by its factors. What depends on parameters alone is computed, so that the file holds it as
initialisers. A recurrence becomes a node of ONNX (`_onnx_nodes`) or torch's `scan` over the formula of its step, which
torch translates to an ONNX Scan, and what is left becomes its formula.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._higher_order_ops.scan import scan

from isometry._rules import check
from isometry.integrations import _onnx_nodes
from isometry.torch import formulas
from isometry.torch.formulas.delta import unit
from isometry.torch.hadamard import HADAMARD
from isometry.torch.linalg._plans import LINALG
from isometry.torch.nn._base import RecurrentLayer
from isometry.torch.operators._plans import BY_STEM
from isometry.torch.sequences._cells import CELLS, NAMES, law
from isometry.torch.sequences._plan import SEQUENCE, decoded

__all__ = ["export"]


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
        Complex states or operators: ONNX has no complex numbers.
    NotImplementedError
        The model calls a layer with a PackedSequence, a mask or ``starts``, or a recurrence with lengths; or it forms a
        Cayley transform from its input, since ONNX has no linear solver.

    Notes
    -----
    Needs the packages onnx and onnxscript. A `GRU` and an `LSTM` in single precision are ONNX's own nodes, which
    runtimes compute by kernels; every other recurrence is a Scan over its steps, with all cells, activations, several
    layers and both directions. Matrices of parameters, of layers, operators, adapters and orthogonal weights, are
    computed at export. Results are those of the model up to rounding. What `torch.compile` has compiled in this
    process is compiled again when it is next called.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> from torch.export import Dim
    >>> layer, x = it.nn.ScoRNN(3, 8), torch.randn(20, 5, 3)
    >>> sizes = {"input": {0: Dim("T", min=2), 1: Dim("B", min=2)}}
    >>> program = export(layer, (x,), "layer.onnx", dynamic_shapes=sizes)  # doctest: +SKIP
    """
    if not isinstance(model, nn.Module):
        check.kind("model", "a torch.nn.Module", model)
    _refuse_complex(model)
    # The step of a scan that an earlier export compiled for fixed sizes would serve this one too.
    torch.compiler.reset()
    # With automatic dynamic shapes, numbers that differ from those of an earlier export would become inputs of the
    # steps, which ONNX refuses.
    with torch.no_grad(), torch._dynamo.config.patch(automatic_dynamic_shapes=False):
        program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
        if any(_is_own(node) for node in program.graph.nodes):
            module = program.run_decompositions(_THROUGH_MATRICES).module()
            compute(module)
            _onnx_nodes.substitute(module)
            program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        program = program.run_decompositions(_IN_TORCH)
        _refuse_own(program)
        return torch.onnx.export(program, args, f, kwargs=kwargs, dynamo=True, **options)


def _refuse_complex(model: nn.Module) -> None:
    for name, layer in model.named_modules():
        if isinstance(layer, RecurrentLayer) and layer.is_complex:
            where = f" ({name})" if name else ""
            raise TypeError(
                f"{type(layer).__name__}{where} has complex states: ONNX has no complex numbers, export a real layer"
            )


def _refuse_own(program: torch.export.ExportedProgram) -> None:
    for node in program.graph.nodes:
        if _is_own(node):
            raise NotImplementedError(
                f"ONNX cannot compute {node.target}: its arguments must be parameters of the model, not results of its "
                "input"
            )


def _is_own(node: fx.Node) -> bool:
    """Whether a node calls an operator of this package."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "isometry"


def compute(module: fx.GraphModule) -> None:
    """Replace the results of this package's operators that depend on parameters and buffers alone, and what follows
    from these, by their values.
    """
    graph, values, own = module.graph, dict[fx.Node, Any](), set[fx.Node]()
    for node in graph.nodes:
        if node.op == "get_attr":
            values[node] = operator.attrgetter(node.target)(module)
        elif _is_pure(node) and all(n in values for n in node.all_input_nodes):
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
            if _is_own(node) or not own.isdisjoint(node.all_input_nodes):
                own.add(node)
    for k, node in enumerate([node for node in values if node in own]):
        users = [user for user in node.users if user not in values]
        if users:
            module.register_buffer(f"computed_{k}", values[node])
            with graph.inserting_before(node):
                attribute = graph.get_attr(f"computed_{k}")
            for user in users:
                user.replace_input_with(node, attribute)
    for node in reversed(list(graph.nodes)):
        if node in values and not node.users:
            graph.erase_node(node)
    used = {node.target for node in graph.nodes if node.op == "get_attr"}
    for name in [name for name, _ in (*module.named_parameters(), *module.named_buffers()) if name not in used]:
        owner, _, leaf = name.rpartition(".")
        delattr(module.get_submodule(owner), leaf)
    module.recompile()


def _is_pure(node: fx.Node) -> bool:
    """Whether a node only computes, and always the same."""
    if node.target is operator.getitem:
        return True
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    return not node.target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in node.target.tags


def _cpu() -> Tensor:
    """The last result of every operator: its backend."""
    return torch.zeros((), dtype=torch.bool, device="cpu")


def _matrix(stem: str, arguments: Sequence[Tensor | None], sizes: tuple[Any, Any], backend: str | None) -> Tensor:
    """W by `isometry::matrix`."""
    w: Tensor = torch.ops.isometry.matrix(stem, sizes, arguments, backend, False)[0]
    if w.is_complex():
        raise TypeError(f"{BY_STEM[stem].matrix.declaration.name} is complex: ONNX has no complex numbers")
    return w


def _applied(
    stem: str, adjoint: bool, features: int, tensors: Sequence[Tensor | None], backend: str | None, _saving: bool
) -> list[Tensor]:
    """`isometry::apply` through W."""
    x, *arguments = tensors
    assert x is not None
    sizes = (x.shape[-1], features) if adjoint else (features, x.shape[-1])
    return [formulas.dense.apply(_matrix(stem, arguments, sizes, backend), x, adjoint), _cpu()]


def _with_matrix(cell: str, stem: str, *rest: Any) -> Any:
    """`isometry::sequence` with W in place of its factors."""
    if stem in ("", "dense"):
        return NotImplemented
    *law, tensors, backend, saving = rest
    count = len(NAMES[cell])
    n = tensors[1].shape[-2]
    w = _matrix(stem, tensors[count:-3], (n, n), backend)
    return torch.ops.isometry.sequence(cell, "dense", *law, [*tensors[:count], w, *tensors[-3:]], backend, saving)


def _by_formula(found: Callable[..., tuple[Any, Any]]) -> Callable[..., list[Tensor]]:
    """The operator of a plan, which `found` returns with its settings from the first arguments, by its formula."""

    def computed(*arguments: Any) -> list[Tensor]:
        *encoded, tensors, _, _ = arguments
        plan, settings = found(*encoded)
        return [*plan.formula(settings, *tensors), _cpu()]

    return computed


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
        raise NotImplementedError("ONNX export needs sequences of one length, without lengths, mask or PackedSequence")
    if tensors[-2] is not None:
        raise NotImplementedError("ONNX export needs sequences without starts")
    assert stem in ("", "dense"), stem
    call, weight = decoded(cell, stem, activation, slope, settings, reverse), tensors[-4] if stem else None
    tensors = tensors[: len(NAMES[cell])]
    if cell == "gru":  # a view of the matrices of the gates beside them would be an alias, which scan refuses
        weight = tensors[1][2].clone()  # type: ignore[index]
    drive, start, step = CELLS[cell].formula(law(call), weight, *tensors)

    def body(carried: tuple[Tensor, ...], drive: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        new = step(drive, carried)
        return new, new[0].clone()

    end, states = scan(body, tuple([t.clone() for t in start]), drive, reverse=reverse)
    result = states[0 if reverse else -1].clone() if last else states
    return [result, *end[1 : SEQUENCE.count(call)], _cpu()]


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
    return [out.transpose(0, 1).clone(), state, _cpu()]


def _substituted(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """A^{-1} B for a triangular A, one row after another."""
    assert left
    n = a.shape[-1]
    if not unitriangular:
        diagonal = a.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        a, b = a / diagonal, b / diagonal
    rows = (a.triu(1) if upper else a.tril(-1)).movedim(-2, 0).clone()
    units = torch.eye(n, dtype=a.dtype, device=a.device)

    def body(solved: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        row, own, unit = now
        new = own.unsqueeze(-2) - row.unsqueeze(-2) @ solved
        return solved + unit.unsqueeze(-1) * new, own.clone()

    solved, _ = scan(body, torch.zeros_like(b), (rows, b.movedim(-2, 0).clone(), units), reverse=upper)
    return solved


#: Operators that are applied or step by their factors, with W in their place.
_THROUGH_MATRICES = {torch.ops.isometry.apply.default: _applied, torch.ops.isometry.sequence.default: _with_matrix}

#: The operators that ONNX does not know, in others.
_IN_TORCH = {
    torch.ops.isometry.matrix.default: _by_formula(lambda stem, shape: (BY_STEM[stem].matrix, shape)),
    torch.ops.isometry.linalg.default: _by_formula(lambda *settings: (LINALG, settings)),
    torch.ops.isometry.hadamard_transform.default: _by_formula(lambda *settings: (HADAMARD, settings)),
    torch.ops.isometry.sequence.default: _scanned,
    torch.ops.isometry.delta_rule.default: _delta_scanned,
    torch.ops.aten.linalg_solve_triangular.default: _substituted,
    torch.ops.aten.hypot.default: lambda a, b: (a * a + b * b).sqrt(),
    # torch's translation makes a vector of a number.
    torch.ops.aten.signbit.default: lambda a: (a < 0) | (a.reciprocal() < 0),
}
