"""The delta rules of flash-linear-attention 0.5.2 by its names, arguments and layouts, computed by `it.delta_rule`.

Every function returns `(o, final_state)`, with None as the state unless `output_final_state`. What all have in common:

- `initial_state`, `cu_seqlens`, `scale`: as in `it.delta_rule`; `use_qk_l2norm_in_kernel` is its `normalise`.
- `use_beta_sigmoid_in_kernel`: the rates are sigmoid(beta), with `allow_neg_eigval` 2 sigmoid(beta).
- `use_gate_in_kernel`: the gates are -exp(A_log) softplus(g + dt_bias), with `lower_bound` that number times
  sigmoid(exp(A_log) (g + dt_bias)). `A_log` (HV numbers), `dt_bias` (as many as a token of g) and `lower_bound` are
  read with it only; with `lower_bound` no A_log means 0.
- `state_v_first`: the states are (N, HV, V, K). Its old name, `transpose_state_layout`, is a DeprecationWarning, and
  beside it a ValueError.
- `cu_seqlens_cpu`, a copy of `cu_seqlens`, is read in its place.
- `chunk_size` (16, 32 or 64; in `chunk_kda` 32 or 64), `safe_gate` and `disable_recompute` choose among kernels of a
  GPU and change nothing here.
- Rates (B, T, HV, V), `gv`, `cp_context`, `head_first` and `return_intermediate_states` are a NotImplementedError.

Chunked and recurrent functions are the same computation: `it.delta_rule` goes by the number of tokens. Errors beside
those, costs, dtypes and derivatives are those of `it.delta_rule`; float32 and float64 are taken by all. On CUDA, where
the library is installed, its chunked functions compute half precision.
"""

from typing import Any

from torch import Tensor

from ..._rules import check
from .._dispatch.function import widened
from ._fla_arguments import Ends, axes, chunks, computed, ends, gates, ones, rates, refused, turned


def chunk_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: Ends | None = None,
    cu_seqlens_cpu: Ends | None = None,
    *,
    chunk_size: int = 64,
    head_first: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """DeltaNet: `it.delta_rule` without gates.

    Parameters
    ----------
    q, k, v, beta : Tensor, shapes (B, T, H, K), (B, T, H, K), (B, T, HV, V), (B, T, HV)
        Queries, keys, values, rates.
    the others
        As in `isometry.torch.fla`.

    Returns
    -------
    tuple of Tensor (B, T, HV, V) and Tensor (N, HV, K, V) or None
        `o` and `final_state`.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, k, v = torch.randn(3, 1, 100, 2, 16).unbind()
    >>> o, state = it.fla.chunk_delta_rule(q, k, v, torch.rand(1, 100, 2), use_qk_l2norm_in_kernel=True)
    >>> o.shape, state
    (torch.Size([1, 100, 2, 16]), None)
    """
    chunks(chunk_size, 16, 32, 64)
    refused(head_first=head_first)
    own = (scale, initial_state, output_final_state, use_qk_l2norm_in_kernel)
    return computed(q, k, v, rates(beta), None, *own, ends(cu_seqlens, cu_seqlens_cpu))


def fused_recurrent_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: Ends | None = None,
) -> tuple[Tensor, Tensor | None]:
    """DeltaNet: `chunk_delta_rule`, where rates that are not given are 1.

    Parameters
    ----------
    the others
        As in `chunk_delta_rule`.

    Returns
    -------
    tuple of Tensor (B, T, HV, V) and Tensor (N, HV, K, V) or None
        `o` and `final_state`.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, k, v = torch.randn(3, 1, 1, 2, 16).unbind()
    >>> o, state = it.fla.fused_recurrent_delta_rule(q, k, v, output_final_state=True)
    >>> state.shape
    torch.Size([1, 2, 16, 16])
    """
    own = (scale, initial_state, output_final_state, use_qk_l2norm_in_kernel)
    return computed(q, k, v, rates(ones(v) if beta is None else beta), None, *own, cu_seqlens)


def chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Ends | None = None,
    cu_seqlens_cpu: Ends | None = None,
    cp_context: Any = None,
    *,
    use_gate_in_kernel: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    chunk_size: int = 64,
    transpose_state_layout: bool | None = None,
    head_first: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet: `it.delta_rule` with a gate per head.

    Parameters
    ----------
    q, k, v, g, beta : Tensor, shapes (B, T, H, K), (B, T, H, K), (B, T, HV, V), (B, T, HV), (B, T, HV)
        Queries, keys, values, logarithms of the gates, rates.
    the others
        As in `isometry.torch.fla`.

    Returns
    -------
    tuple of Tensor (B, T, HV, V) and Tensor (N, HV, K, V) or None
        `o` and `final_state`.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, k, v = torch.randn(3, 1, 100, 2, 16, dtype=torch.bfloat16).unbind()
    >>> o, _ = it.fla.chunk_gated_delta_rule(q, k, v, -torch.rand(1, 100, 2), torch.rand(1, 100, 2))
    >>> o.dtype
    torch.bfloat16
    """
    chunks(chunk_size, 16, 32, 64)
    refused(cp_context=cp_context, head_first=head_first)
    g = gates(axes("g", g, 3), use_gate_in_kernel, A_log, dt_bias)
    beta = rates(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    v_first = turned(state_v_first, transpose_state_layout)
    own = (scale, initial_state, output_final_state, use_qk_l2norm_in_kernel)
    return computed(q, k, v, beta, g, *own, ends(cu_seqlens, cu_seqlens_cpu), turned=v_first)


def fused_recurrent_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    gk: Tensor | None = None,
    gv: Tensor | None = None,
    beta: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Ends | None = None,
    *,
    transpose_state_layout: bool | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet: `chunk_gated_delta_rule`, with gates per row of the state too; without `beta` the rates are 1.

    Parameters
    ----------
    gk : Tensor, shape (B, T, HV, K), optional
        Logarithms of a gate per row of the state, which multiplies that of `g`.
    gv : Tensor, optional
        A gate per column of the state: a NotImplementedError.
    the others
        As in `chunk_gated_delta_rule`.

    Returns
    -------
    tuple of Tensor (B, T, HV, V) and Tensor (N, HV, K, V) or None
        `o` and `final_state`.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, k, v = torch.randn(3, 1, 1, 2, 16).unbind()
    >>> g, beta = torch.randn(2, 1, 1, 2).unbind()
    >>> own = {"use_gate_in_kernel": True, "A_log": torch.zeros(2), "use_beta_sigmoid_in_kernel": True}
    >>> o, state = it.fla.fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta, output_final_state=True, **own)
    >>> o, state = it.fla.fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta, initial_state=state, **own)
    """
    refused(gv=gv)
    gate, rows = gates(axes("g", g, 3), use_gate_in_kernel, A_log, dt_bias), axes("gk", gk, 4)
    if rows is not None:
        gate = rows if gate is None else widened(gate).unsqueeze(-1) + widened(rows)
    beta = rates(ones(v) if beta is None else beta, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    v_first = turned(state_v_first, transpose_state_layout)
    own = (scale, initial_state, output_final_state, use_qk_l2norm_in_kernel)
    return computed(q, k, v, beta, gate, *own, cu_seqlens, turned=v_first)


def chunk_gated_delta_product(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    num_householder: int,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: Ends | None = None,
    cu_seqlens_cpu: Ends | None = None,
) -> tuple[Tensor, Tensor | None]:
    """DeltaProduct: `it.delta_rule` with `householders=num_householder`.

    Parameters
    ----------
    q : Tensor, shape (B, T, H, K)
        Queries.
    k, v, beta : Tensor, shapes (B, T m, H, K), (B, T m, HV, V), (B, T m, HV)
        m keys, values and rates per token.
    g : Tensor, shape (B, T, HV), or None
        Logarithms of the gates, one per token.
    num_householder : int
        m.
    the others
        As in `isometry.torch.fla`; `cu_seqlens` counts tokens.

    Returns
    -------
    tuple of Tensor (B, T, HV, V) and Tensor (N, HV, K, V) or None
        `o` and `final_state`.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, (k, v) = torch.randn(1, 10, 2, 8), torch.randn(2, 1, 30, 2, 8).unbind()
    >>> o, _ = it.fla.chunk_gated_delta_product(q, k, v, None, torch.rand(1, 30, 2), num_householder=3)
    >>> o.shape
    torch.Size([1, 10, 2, 8])
    """
    m = check.count("num_householder", num_householder, 1)
    own = (scale, initial_state, output_final_state, use_qk_l2norm_in_kernel)
    return computed(q, k, v, beta, axes("g", g, 3), *own, ends(cu_seqlens, cu_seqlens_cpu), householders=m)


def chunk_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    disable_recompute: bool = False,
    return_intermediate_states: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Ends | None = None,
    cu_seqlens_cpu: Ends | None = None,
    cp_context: Any = None,
    *,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    chunk_size: int = 64,
    transpose_state_layout: bool | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention: `it.delta_rule` with a gate per row of the state.

    Parameters
    ----------
    q, k, v, g, beta : Tensor, shapes (B, T, H, K), (B, T, H, K), (B, T, HV, V), (B, T, HV, K), (B, T, HV)
        Queries, keys, values, logarithms of the gates, rates.
    the others
        As in `isometry.torch.fla`.

    Returns
    -------
    tuple of Tensor (B, T, HV, V) and Tensor (N, HV, K, V) or None
        `o` and `final_state`.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, k, v = torch.randn(3, 1, 100, 2, 16).unbind()
    >>> o, _ = it.fla.chunk_kda(q, k, v, -torch.rand(1, 100, 2, 16), torch.rand(1, 100, 2))
    >>> o.shape
    torch.Size([1, 100, 2, 16])
    """
    del disable_recompute
    chunks(chunk_size, 32, 64)
    refused(cp_context=cp_context, return_intermediate_states=return_intermediate_states)
    if safe_gate and use_gate_in_kernel and (lower_bound is None or not -5 <= lower_bound < 0):
        raise ValueError(f"safe_gate with use_gate_in_kernel needs a lower_bound in [-5, 0), not {lower_bound}")
    return fused_recurrent_kda(
        q, k, v, g, beta, A_log, dt_bias, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel,
        use_gate_in_kernel, use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound, state_v_first,
        ends(cu_seqlens, cu_seqlens_cpu), transpose_state_layout=transpose_state_layout,
    )  # fmt: skip


def fused_recurrent_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    lower_bound: float | None = None,
    state_v_first: bool = False,
    cu_seqlens: Ends | None = None,
    *,
    transpose_state_layout: bool | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention: `chunk_kda` with another order of arguments.

    Parameters
    ----------
    the others
        As in `chunk_kda`.

    Returns
    -------
    tuple of Tensor (B, T, HV, V) and Tensor (N, HV, K, V) or None
        `o` and `final_state`.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, k, v = torch.randn(3, 1, 1, 2, 16).unbind()
    >>> o, _ = it.fla.fused_recurrent_kda(q, k, v, -torch.rand(1, 1, 2, 16), torch.rand(1, 1, 2))
    >>> o.shape
    torch.Size([1, 1, 2, 16])
    """
    gate = gates(axes("g", g, 4), use_gate_in_kernel, A_log, dt_bias, lower_bound)
    beta = rates(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    v_first = turned(state_v_first, transpose_state_layout)
    own = (scale, initial_state, output_final_state, use_qk_l2norm_in_kernel)
    return computed(q, k, v, beta, gate, *own, cu_seqlens, turned=v_first)


__all__ = [
    "chunk_delta_rule",
    "chunk_gated_delta_product",
    "chunk_gated_delta_rule",
    "chunk_kda",
    "fused_recurrent_delta_rule",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_kda",
]
