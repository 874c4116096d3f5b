"""The gated recurrent unit over a whole sequence in one call; what `goru` has in common with it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .._backend import only_cpu
from .._rules import check, check_gru, check_recurrence
from ._function import by_formula, distinct, dtype_name
from ._gru_function import Gru, GruCompiled, Setting, formula, with_transition
from .operators._operator import Operator, real_tensor, tensor
from .recurrence import _order


def gru(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None,
    *,
    h0: Tensor | None = None,
    reset: str = "before",
    activation: str = "tanh",
    activation_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
    slope: float = 0.1,
    lengths: Tensor | Sequence[int] | None = None,
    reverse: bool = False,
    backend: str | None = None,
) -> Tensor:
    r"""All states of a gated recurrent unit (GRU).

    .. math::

        z_t = \sigma(W_z h_{t-1} + U_z x_t + b_z), \qquad r_t = \sigma(W_r h_{t-1} + U_r x_t + b_r), \\
        h_t = z_t * h_{t-1} + (1 - z_t) * c_t,

    with :math:`c_t = \phi(W_h (r_t * h_{t-1}) + U_h x_t + b_h)`, or with reset "after"
    :math:`c_t = \phi(r_t * (W_h h_{t-1} + c_h) + U_h x_t + b_h)`, which is that of ``torch.nn.GRU`` (whose packed
    order of gates is r, z, h).

    Parameters
    ----------
    x : Tensor, shape (T, B, d)
        The input, real.
    w : Tensor, shape (3, n, n)
        W_z, W_r and W_h.
    u : Tensor, shape (3, n, d)
        U_z, U_r and U_h.
    b : Tensor, shape (3, n), or None
        b_z, b_r and b_h, zero if None.
    h0 : Tensor, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    reset : {"before", "after"}
        Whether r acts on the state before W_h, or on the product after it.
    activation : str
        phi, one of the names of `activate`.
    activation_bias : Tensor, optional
        The bias of modReLU.
    hidden_bias : Tensor, shape (n,), optional
        c_h, with reset "after" only.
    slope : float
        The slope of "leaky_relu".
    lengths : Tensor or sequence of int, shape (B,), optional
        The length of each sequence, in 1..T; states behind it are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the place of their input.
    backend : {"cpu"}, optional
        There are no kernels for the GPU: it runs on the CPU, whatever `use_backend` says.

    Returns
    -------
    Tensor, shape (T, B, n)

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 1..T, unknown names, a hidden_bias with reset "before".
    TypeError
        Anything but real tensors of one precision, lengths that are no integers, a reverse that is no bool.
    NotImplementedError
        The backend "gpu".

    References
    ----------
    Cho et al. Learning phrase representations using RNN encoder-decoder for statistical machine translation.
    EMNLP 2014.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> x, w, u, b = torch.randn(20, 5, 3), torch.randn(3, 8, 8), torch.randn(3, 8, 3), torch.zeros(3, 8)
    >>> it.gru(x, w, u, b).shape
    torch.Size([20, 5, 8])

    With b_z large the state is kept:

    >>> b[0] = 100
    >>> torch.allclose(it.gru(x, w, u, b, h0=torch.ones(8)), torch.tensor(1.0))
    True
    """
    biases = activation_bias, hidden_bias
    return gated(None, (x, w, u, b, h0), reset, activation, biases, slope, lengths, reverse, backend)


def gated(
    transition: Operator | None,
    tensors: tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None],
    reset: str,
    activation: str,
    biases: tuple[Tensor | None, Tensor | None],
    slope: float,
    lengths: Tensor | Sequence[int] | None,
    reverse: bool,
    backend: str | None,
) -> Tensor:
    """The states of `gru`, or of `goru` with a transition as W_h: x, w, u, b, h0, and the biases of phi and W_h."""
    (x, w, u, b, h0), (activation_bias, hidden_bias) = tensors, biases
    only_cpu(backend)
    reverse = check.flag("reverse", reverse)
    x = tensor("x", x)
    check.real("x", dtype_name(x.dtype))
    beside = x.dtype, x.device
    w, u = (_beside(name, t, *beside) for name, t in (("w", w), ("u", u)))
    given = {"b": b, "h0": h0, "hidden_bias": hidden_bias, "activation_bias": activation_bias}
    own = {name: None if t is None else _beside(name, t, *beside) for name, t in given.items()}
    shapes = {name: None if t is None else tuple(t.shape) for name, t in own.items()}
    steps, batch, n = check_gru.arguments(
        tuple(x.shape),
        tuple(w.shape),
        tuple(u.shape),
        shapes["b"],
        shapes["h0"],
        shapes["hidden_bias"],
        reset,
        transition is None,
    )
    if transition is not None:
        kind = dtype_name(transition.dtype)
        check_gru.transition(transition.shape, transition.batch_shape, kind, n)
        check.same_precision("transition", kind, "x", dtype_name(x.dtype))
    check_recurrence.activation(activation, "activation")
    check_recurrence.slope(slope)
    check_recurrence.activation_units(
        activation, n, shapes["activation_bias"], argument="activation_bias", features_of="the state"
    )
    h0 = None if own["h0"] is None else own["h0"].expand(batch, n)
    ends, order = _order(lengths, steps, batch, x.device)
    setting = Setting(reset == "after", activation, float(slope), ends, reverse)
    rest = own["hidden_bias"], own["activation_bias"]
    if order is None:
        return _states(transition, (x, w, u, own["b"], h0, *rest), setting)
    # The kernels want the longest sequence first.
    h0 = None if h0 is None else h0[order]
    return _states(transition, (x[:, order], w, u, own["b"], h0, *rest), setting)[:, order.argsort()]


def _beside(name: str, value: object, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A real tensor of the precision of x."""
    if not isinstance(value, Tensor):
        check.kind(name, "a torch.Tensor", value)
    return real_tensor(name, value, "x", dtype, device)


def _states(transition: Operator | None, tensors: tuple[Tensor | None, ...], setting: Setting) -> Tensor:
    x, w, *rest = tensors
    assert x is not None and w is not None
    if transition is not None:
        if not by_formula(*tensors, setting.lengths):
            steps = transition._steps(x.dtype, x.shape[0], x.shape[1], True, "cpu")
            if steps is not None:
                functions, arguments = steps
                return Gru.apply(functions, setting, *tensors, *arguments)  # type: ignore[no-any-return]
        tensors = x, with_transition(w, transition.matrix(backend="cpu")), *rest
    if not by_formula(*tensors, setting.lengths):
        return Gru.apply(None, setting, *tensors)  # type: ignore[no-any-return]
    # Inside a transform of torch.func, and in forward mode, the compiler gets the loop, as that of `recurrence` does.
    plain = not torch._C._are_functorch_transforms_active() and forward_ad._current_level < 0
    if torch.compiler.is_compiling() and plain and x.device.type == "cpu":
        states: Tensor = GruCompiled.apply(*distinct(*tensors), *setting)[0]
        return states
    return formula(setting, *tensors)  # type: ignore[arg-type]
