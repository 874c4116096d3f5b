"""The arguments of flash-linear-attention's functions in terms of those of `delta_rule`."""

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from torch import Tensor
from torch.nn.functional import logsigmoid

from ..._rules import check
from .._dispatch.function import widened
from ..formulas.delta import sigmoid_gate, softplus_gate
from .delta_rule import delta_rule, real

Ends = Tensor | Sequence[int]
_FORMS = {
    ("g", 3): "(B, T, HV)",
    ("g", 4): "(B, T, HV, K)",
    ("gk", 4): "(B, T, HV, K)",
    ("initial_state", 4): "(N, HV, V, K)",
}


def refused(**given: Any) -> None:
    """Arguments that would change results, and are not computed."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise NotImplementedError(f"{name} is not implemented: leave it out")


def chunks(size: Any, *known: int) -> None:
    """A length of chunks that flash-linear-attention has kernels for; nothing depends on it here."""
    if check.count("chunk_size", size, 1) not in known:
        raise ValueError(f"chunk_size must be {', '.join(map(str, known[:-1]))} or {known[-1]}, not {size}")


def ends(cu_seqlens: Ends | None, cu_seqlens_cpu: Ends | None) -> Ends | None:
    """The copy on the CPU if there is one, which `delta_rule` reads without waiting for a device."""
    return cu_seqlens if cu_seqlens_cpu is None else cu_seqlens_cpu


def axes(name: str, value: Any, count: int) -> Tensor | None:
    """An optional tensor of so many axes."""
    if value is not None and real(name, value).ndim != count:
        raise ValueError(f"{name} must have shape {_FORMS[name, count]}, not {tuple(value.shape)}")
    return value  # type: ignore[no-any-return]


def ones(v: Any) -> Tensor:
    """The rates of tokens that have none."""
    return real("v", v).new_ones(v.shape[:-1])


def rates(beta: Any, sigmoid: bool = False, negative: bool = False) -> Tensor:
    """sigmoid(beta) or 2 sigmoid(beta), if asked for."""
    if real("beta", beta).ndim == 4:
        raise NotImplementedError("beta of shape (B, T, HV, V) is not implemented: it must have shape (B, T, HV)")
    asked = check.flag("use_beta_sigmoid_in_kernel", sigmoid)
    if check.flag("allow_neg_eigval", negative) and not asked:
        raise ValueError("allow_neg_eigval needs use_beta_sigmoid_in_kernel")
    if not asked:
        return beta  # type: ignore[no-any-return]
    one = widened(beta).sigmoid()
    return 2 * one if negative else one


def gates(
    g: Tensor | None, asked: bool, a_log: Any, dt_bias: Any = None, lower_bound: float | None = None
) -> Tensor | None:
    """-exp(A_log) softplus(g + dt_bias), or lower_bound sigmoid(exp(A_log) (g + dt_bias)), if asked for."""
    if not check.flag("use_gate_in_kernel", asked):
        return g
    if g is None:
        raise ValueError("use_gate_in_kernel needs g")
    heads = g.shape[2:]
    g = widened(g)
    if dt_bias is not None:
        g = g + _shaped("dt_bias", dt_bias, heads)
    if a_log is None and lower_bound is not None:
        return check.number("lower_bound", lower_bound) * g.sigmoid()
    log_a = _shaped("A_log", a_log, (heads[0], *[1] * (len(heads) - 1)))
    if lower_bound is not None:
        return check.number("lower_bound", lower_bound) * sigmoid_gate(log_a, g)
    factor, shift = softplus_gate(log_a)
    # softplus(x) = -log sigmoid(-x), which torch computes to rounding for every x
    return -factor * logsigmoid(-(g + shift))


def turned(first: bool, old: bool | None) -> bool:
    """Whether states are (N, HV, V, K)."""
    first = check.flag("state_v_first", first)
    if old is None:
        return first
    if first:
        raise ValueError("transpose_state_layout is the old name of state_v_first: give one of them")
    warnings.warn("transpose_state_layout is now called state_v_first", DeprecationWarning, stacklevel=3)
    return check.flag("transpose_state_layout", old)


def computed(*given: Any, turned: bool = False, householders: int = 1) -> tuple[Tensor, Tensor | None]:
    """`delta_rule` in the order of arguments that fla has; the state only if asked for."""
    q, k, v, beta, g, scale, initial_state, output_final_state, normalise, cu_seqlens = given
    kept, own = check.flag("output_final_state", output_final_state), check.flag("use_qk_l2norm_in_kernel", normalise)
    if turned and axes("initial_state", initial_state, 4) is not None:
        initial_state = initial_state.mT
    o, state = delta_rule(
        q, k, v, beta, g=g, householders=householders, scale=scale, initial_state=initial_state,
        cu_seqlens=cu_seqlens, normalise=own,
    )  # fmt: skip
    return o, (state.mT.contiguous() if turned else state) if kept else None


def _shaped(name: str, value: Any, shape: Sequence[int]) -> Tensor:
    """A parameter of the gates, from any shape with as many elements."""
    if real(name, value).numel() != prod(shape):
        raise ValueError(f"{name} must have {prod(shape)} elements, not shape {tuple(value.shape)}")
    return widened(value).reshape(tuple(shape))
