"""The plain recurrence, h_t = phi(W h_{t-1} + V x_t + b), over a whole sequence in one call."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .._rules import check, check_recurrence
from ._function import COMPLEX_OF, by_formula, distinct, dtype_name, visible
from ._recurrence_compiled import RecurrenceCompiled
from ._recurrence_function import Recurrence, Setting, formula
from .operators._functions import THROUGH_MATRIX
from .operators._operator import Operator, real_tensor, tensor


def recurrence(
    transition: Operator,
    x: Tensor,
    input_weight: Tensor,
    *,
    h0: Tensor | None = None,
    bias: Tensor | None = None,
    activation: str = "tanh",
    activation_bias: Tensor | None = None,
    slope: float = 0.1,
    activation_on: str = "all",
    lengths: Tensor | Sequence[int] | None = None,
    reverse: bool = False,
    backend: str | None = None,
) -> Tensor:
    """All states of h_t = phi(W h_{t-1} + V x_t + b), t = 0 .. T - 1.

    If any of W, V, b, x and h0 is complex, so are the states.

    Parameters
    ----------
    transition : Operator
        W, square, one operator.
    x : Tensor, shape (T, B, d)
        The input.
    input_weight : Tensor, shape (n, d)
        V.
    h0 : Tensor, shape (B, n), (1, n) or (n,), optional
        The state before the first step, zero if not given.
    bias : Tensor, shape (n,), optional
        b, the additive bias.
    activation : str
        phi, one of the names of `activate`.
    activation_bias : Tensor, optional
        The bias of modReLU.
    slope : float
        The slope of "leaky_relu".
    activation_on : {"all", "input"}
        "input" is the variant h_t = W h_{t-1} + phi(V x_t + b).
    lengths : Tensor or sequence of int, shape (B,), optional
        The length of each sequence, in 1..T; states past its end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the place of their input.
    backend : {"cpu", "gpu"}, optional
        Where the kernels run; by default as `use_backend` says.

    Returns
    -------
    Tensor, shape (T, B, n)

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 1..T, unknown names.
    TypeError
        A transition that is not an operator, other arguments than tensors of the same floating-point precision,
        lengths that are not integers, a reverse that is not a bool.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> turn = it.Cayley(torch.tensor([1.0]))
    >>> x = torch.zeros(3, 1, 1)
    >>> it.recurrence(turn, x, torch.ones(2, 1), h0=torch.tensor([1.0, 0.0]), activation="identity")[:, 0]
    tensor([[ 0.,  1.],
            [-1.,  0.],
            [ 0., -1.]])
    """
    reverse = check.flag("reverse", reverse)
    if backend is not None:
        check.backend(backend)
    if not isinstance(transition, Operator):
        check.kind("transition", "an operator of isometry.torch", transition)
    n = check_recurrence.recurrence_transition(transition.shape, transition.batch_shape)
    x, input_weight = tensor("x", x), tensor("input_weight", input_weight)
    h0 = None if h0 is None else tensor("h0", h0)
    bias = None if bias is None else tensor("bias", bias)
    dtype = _common(transition, {"x": x, "input_weight": input_weight, "h0": h0, "bias": bias})
    if activation_bias is not None:
        activation_bias = real_tensor("activation_bias", activation_bias, "the transition", dtype, x.device)
    steps, batch, _ = check_recurrence.recurrence(
        n,
        tuple(x.shape),
        tuple(input_weight.shape),
        None if h0 is None else tuple(h0.shape),
        None if bias is None else tuple(bias.shape),
        activation_on=activation_on,
    )
    check_recurrence.activation(activation, "activation")
    check_recurrence.slope(slope)
    check_recurrence.activation_units(
        activation,
        n,
        None if activation_bias is None else tuple(activation_bias.shape),
        complex_=dtype.is_complex,
        argument="activation_bias",
        features_of="the transition",
    )
    if h0 is not None:
        h0 = h0.to(dtype).expand(batch, n)
    drive = x.to(dtype), input_weight.to(dtype), h0, None if bias is None else bias.to(dtype), activation_bias
    ends, order = _order(lengths, steps, batch, x.device)
    setting = Setting(activation, float(slope), activation_on == "input", ends, reverse, backend)
    if order is None:
        return _states(transition, drive, setting)
    # The kernels require the longest sequence first.
    rows = drive[0][:, order], drive[1], None if h0 is None else h0[order], *drive[3:]
    return _states(transition, rows, setting)[:, order.argsort()]


def _common(transition: Operator, given: dict[str, Tensor | None]) -> torch.dtype:
    """The dtype of the states."""
    dtype = transition.dtype
    for name, t in given.items():
        if t is not None and t.dtype is not dtype:
            check.same_precision(name, dtype_name(t.dtype), "the transition", dtype_name(dtype))
            dtype = COMPLEX_OF[dtype]
    return dtype


def _order(
    lengths: Tensor | Sequence[int] | None, steps: int, batch: int, device: torch.device
) -> tuple[Tensor | None, Tensor | None]:
    """The lengths, longest first, and the sorting order of the batch if it is not sorted already."""
    if lengths is None:
        return None, None
    ends = _integers("lengths", lengths)
    check_recurrence.lengths_shape(tuple(ends.shape), batch)
    ends = ends.to(torch.int64)
    seen = visible(ends)
    if seen:
        check_recurrence.lengths_range(int(ends.min()), int(ends.max()), steps)
    falling = seen and bool((ends[1:] <= ends[:-1]).all())
    # A separate copy, because the backward pass reads it again.
    ends = ends.to(device, copy=True)
    if falling:
        return ends, None
    order = ends.argsort(descending=True, stable=True)
    return ends[order], order


def _integers(argument: str, value: object) -> Tensor:
    """The value as a tensor of integers."""
    try:
        t = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        check.unreadable(argument, error)
    check.integer(argument, dtype_name(t.dtype))
    return t


def _states(transition: Operator, drive: tuple[Tensor | None, ...], setting: Setting) -> Tensor:
    x = drive[0]
    assert x is not None
    if by_formula(*drive, setting.lengths):
        weight = transition.matrix(backend=setting.backend).to(x.dtype)
        # Inside a transform of torch.func, and in forward mode, the compiler gets the loop: its operators have
        # neither tangents nor batches. It guards on the values read here, so a graph traced outside these modes is
        # not reused inside them.
        plain = not torch._C._are_functorch_transforms_active() and forward_ad._current_level < 0
        if torch.compiler.is_compiling() and plain and x.device.type == "cpu":
            states: Tensor = RecurrenceCompiled.apply(*distinct(weight, *drive), *setting)[0]
            return states
        return formula(weight, drive, setting)
    steps = transition._steps(x.dtype, x.shape[0], x.shape[1], backend=setting.backend)
    if steps is not None:
        functions, arguments = steps
        return Recurrence.apply(functions, setting, *drive, *arguments)  # type: ignore[no-any-return]
    weight = transition.matrix(backend=setting.backend).to(x.dtype)
    if by_formula(weight):
        return formula(weight, drive, setting)
    return Recurrence.apply(THROUGH_MATRIX, setting, *drive, weight)  # type: ignore[no-any-return]
