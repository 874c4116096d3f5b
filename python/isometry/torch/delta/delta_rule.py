"""The delta rule: a state multiplied by generalised Householder reflections that every token draws anew."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from ..._rules import check, check_delta, check_out
from .._dispatch.function import HALF, dtype_name
from .._dispatch.mode import KERNEL, mode, symbolic
from .._dispatch.private import transforms_active
from .._dispatch.results import computed
from ..operators._operator import integers
from . import _library
from ._plan import DELTA_RULE, Options, written

#: The types that are computed in float32.
_TAKEN = (torch.float32, torch.float64, *HALF)
_NAMES = ("q", "k", "v", "beta", "g", "initial_state")


def delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    *,
    g: Tensor | None = None,
    householders: int = 1,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    cu_seqlens: Tensor | Sequence[int] | None = None,
    normalise: bool = False,
    out_state: Tensor | None = None,
    backend: str | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Apply the delta rule to sequences of keys, values and queries, differentiably.

    Every head has a state S (K x V). A token multiplies it by its gate, then each of its m = `householders` rows writes
    its value under its key, and the query reads:

    .. math::

        S \leftarrow \operatorname{diag}(e^{g_t}) S, \qquad
        S \leftarrow (I - \beta_i k_i k_i^T) S + \beta_i k_i v_i^T, \qquad o_t = \text{scale} \; S^T q_t.

    I - beta k k^T is a generalised Householder reflection, orthogonal for beta |k|^2 = 2. DeltaNet has no gate and
    m = 1, Gated DeltaNet a gate per head, DeltaProduct m > 1, Kimi Delta Attention a gate per row of S.

    Parameters
    ----------
    q : Tensor, shape (B, T, H, K)
        Queries.
    k : Tensor, shape (B, T m, H, K)
        Keys.
    v : Tensor, shape (B, T m, HV, V)
        Values; HV is a multiple of H, and value head h reads key head h H / HV.
    beta : Tensor, shape (B, T m, HV)
        Rates.
    g : Tensor, shape (B, T, HV) or (B, T, HV, K), optional
        Logarithms of the gates, one per head or one per row of S; no gate if not given.
    householders : int
        m, the number of rows of a token.
    scale : float, optional
        The factor of the outputs, K^-1/2 if not given.
    initial_state : Tensor, shape (B, HV, K, V), or (N, HV, K, V) with `cu_seqlens`, optional
        Zero if not given.
    cu_seqlens : Tensor or sequence of int, shape (N + 1,), optional
        Integers that ascend from 0 to T, for a batch of 1: the first token of each of N sequences that follow each
        other, and T. Its values are read, so tensors on other devices wait for them.
    normalise : bool
        Whether q and k are divided by sqrt(|.|^2 + 1e-6) first.
    out_state : Tensor, optional
        Receives the last states, in their shape and dtype. Where no gradient is recorded it may be `initial_state`: the
        states are then continued in place. After an error or ctrl-C its numbers are unspecified.
    backend : {"cpu", "gpu"}, optional
        Where the kernels run; by default as `use_backend` says. Tensors on other devices are computed by torch
        operations, those of half precision on CUDA by flash-linear-attention where it is installed.

    Returns
    -------
    o : Tensor, shape (B, T, HV, V)
        In the dtype of v.
    state : Tensor, shape (B, HV, K, V) or (N, HV, K, V)
        The states after the sequences: `out_state` or a new tensor; float32 for float16 and bfloat16.

    Raises
    ------
    ValueError
        Shapes that do not fit, `cu_seqlens` that does not ascend from 0 to T or that `vmap` maps over, an `out_state`
        that shares memory with part of another tensor.
    RuntimeError
        `out_state` is `initial_state` while a gradient is recorded.
    TypeError
        Arguments other than real tensors of one precision. float16, bfloat16 and float32 may be mixed: all are computed
        in float32. float64 on the GPU.
    NotImplementedError
        If there is no GPU for the backend "gpu".

    Notes
    -----
    About 6 K V + 128 (K + V) operations per row and value head, backward about two and a half times that, in chunks of
    64 rows; up to 8 rows are computed one by one. Backward keeps the arguments and one state per 64 rows. Threads share
    pairs of a sequence and a head; where that leaves threads idle, they share the chunks and the columns of V of every
    head. Decays below e^-87 (e^-708 in double precision) are 0. Outputs do not depend on later tokens, even on NaN; on
    the GPU NaN reaches all outputs of its chunk.

    References
    ----------
    Schlag, Irie, Schmidhuber. Linear transformers are secretly fast weight programmers. ICML 2021. Yang, Wang, Zhang,
    Shen, Kim. Parallelizing linear transformers with the delta rule over sequence length. NeurIPS 2024. Yang, Kautz,
    Hatamizadeh. Gated delta networks. ICLR 2025. Siems et al. DeltaProduct. NeurIPS 2025. Kimi Team. Kimi Linear. 2025.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> q, k, v = torch.randn(3, 1, 100, 2, 16).unbind()
    >>> o, state = it.delta_rule(q, k, v, torch.rand(1, 100, 2), g=-torch.rand(1, 100, 2), normalise=True)
    >>> o.shape, state.shape
    (torch.Size([1, 100, 2, 16]), torch.Size([1, 2, 16, 16]))
    """
    if backend is not None:
        check.backend(backend)
    tensors, dtype, out = _taken((q, k, v, beta, g, initial_state))
    m, own = check.count("householders", householders, 1), check.flag("normalise", normalise)
    ends = None if cu_seqlens is None else integers("cu_seqlens", cu_seqlens, torch.device("cpu")).contiguous()
    count = None if ends is None else check_delta.ends_shape(tuple(ends.shape))
    sizes = tuple([None if t is None else t.shape for t in tensors])
    _, states = (check_delta.shapes if symbolic() else check_delta.known)(sizes, m, count)
    if ends is not None and not is_compiling():
        check_delta.ends_values(_values(ends), q.shape[1])
    options = Options(m, check_delta.factor(scale, states[2]), own)
    if out_state is None and not q.is_cpu and (found := _library.computed(options, tensors, ends)) is not None:
        return found  # type: ignore[return-value]
    if dtype is torch.float32:
        tensors = [t if t is None or t.dtype is dtype else t.to(dtype) for t in tensors]
    how = mode(*tensors) if out_state is None else mode(*tensors, _room(out_state, states, dtype))
    if out_state is not None and how is KERNEL and _whole(out_state) and (at := DELTA_RULE.place(backend)) != "gpu":
        o, state = written(options, (*tensors, ends), out_state, at), out_state
    else:
        o, state = computed(DELTA_RULE, how, backend, options, (*tensors, ends))
        if out_state is not None:
            if tensors[5] is out_state and state.requires_grad:
                raise RuntimeError("out_state must not be initial_state where a gradient is recorded")
            state = out_state.copy_(state)
    return (o if out is dtype else o.to(out)), state


def _room(out_state: Any, states: check.Shape, dtype: torch.dtype) -> Tensor:
    """A tensor for the last states."""
    given = real("out_state", out_state)
    check_out.room("out_state", tuple(given.shape), dtype_name(given.dtype), states, dtype_name(dtype))
    return given


def _whole(out_state: Tensor) -> bool:
    """Whether a kernel can write to it."""
    return out_state.is_contiguous() and not out_state.is_neg()


def _values(ends: Tensor) -> list[int]:
    try:
        # In torch 2.8 `tolist` does not work inside torch.func.grad.
        return [end.item() for end in ends] if transforms_active() else ends.tolist()
    except RuntimeError:
        if transforms_active():
            raise ValueError("cu_seqlens must be the same for all members of a vmap, not mapped over") from None
        raise


def real(name: str, value: Any) -> Tensor:
    """An argument of any real type that is taken."""
    if not isinstance(value, Tensor):
        check.kind(name, "a torch.Tensor", value)
    if value.layout is not torch.strided:
        check.strided(name, value.layout)
    if value.dtype not in _TAKEN:
        check.real(name, dtype_name(value.dtype))
    return value


def _taken(given: Sequence[Any]) -> tuple[list[Any], torch.dtype, torch.dtype]:
    """The arguments as real tensors, the dtype of the computation, and that of the outputs."""
    tensors: list[Any] = [
        None if value is None and name in ("g", "initial_state") else real(name, value)
        for name, value in zip(_NAMES, given, strict=True)
    ]
    q, _, v, *_ = tensors
    computed_in = lambda dtype: torch.float32 if dtype in HALF else dtype
    dtype = computed_in(q.dtype)
    for name, t in zip(_NAMES, tensors, strict=True):
        if t is not None and computed_in(t.dtype) is not dtype:
            other = f"{name} is {dtype_name(t.dtype)} and q is {dtype_name(q.dtype)}"
            raise TypeError(f"{other}: they must have the same precision")
    return tensors, dtype, v.dtype
