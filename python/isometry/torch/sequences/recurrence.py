"""The plain recurrence, h_t = phi(W h_{t-1} + V x_t + b), over a whole sequence in one call."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from ..._cells.recurrence import RECURRENCE
from ..._rules import check
from ..operators._operator import Operator
from ._sequence import Options, run


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
    activation_on: Literal["all", "input"] = "all",
    lengths: Tensor | Sequence[int] | None = None,
    reverse: bool = False,
    backend: str | None = None,
    checkpoint: Literal["none", "sqrt", "reversible"] = "none",
    output: Literal["states", "last"] = "states",
    starts: Tensor | None = None,
    start_state: Tensor | None = None,
) -> Tensor:
    """All states of the recurrence h_t = phi(W h_{t-1} + V x_t + b).

    If any of W, V, b, x and h0 is complex, so are the states.

    Parameters
    ----------
    transition : Operator
        W, square, one operator; or a stack of batch_shape (E,), an ensemble: E recurrences of the same sizes in one
        call.
    x : Tensor, shape (T, B, d)
        The input; of an ensemble (T, E, B, d), or (T, 1, B, d) for all replicas. Its other arrays may have the replicas
        as a further first axis: input_weight (E, n, d), h0 (E, B, n), biases (E, n).
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
        The length of each sequence, in 0..T; states past its end are zero.
    reverse : bool
        Whether each sequence is read from its own end; states keep the position of their input.
    backend : {"cpu", "gpu"}, optional
        Where the kernels run; by default as `use_backend` says.
    checkpoint : {"none", "sqrt", "reversible"}
        The states that are saved for backward. "none": all. "sqrt": some sqrt(T) of them; the segments between them are
        computed again, with states and gradients the same to the last bit. "reversible": sqrt(T) / 8 of them; the steps
        between them are undone with W^H, for the activations "identity", "oplu" and "oplu_halves", or any with
        ``activation_on`` "input", and a transition that is orthogonal or unitary. States are the same to the last bit,
        gradients up to rounding. No effect on a GPU.
    output : {"states", "last"}
        "last" returns only the last state of each sequence, (B, n): h0 for one of length 0.
    starts : Tensor, shape (T, B), bool, optional
        Reset mask: where starts[t, b] holds, a sequence begins at step t of column b, from start_state. Values
        and gradients are those of separate calls; with `reverse` the piece with a column's last step starts from h0.
    start_state : Tensor, shape (T, B, n), (B, n) or (n,), optional
        The state before each marked step, entries of other steps not being read, or before all of them; zero if not
        given. With `reverse` start_state[t] is before the steps up to t - 1.

    Returns
    -------
    Tensor, shape (T, B, n), or (B, n) with output "last"
        Of an ensemble (T, E, B, n) or (E, B, n).

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lengths outside 0..T, unknown names, a recurrence
        whose steps cannot be undone with checkpoint "reversible".
    TypeError
        A transition that is not an operator, arguments other than tensors of the same floating-point precision,
        lengths that are not integers, a reverse that is not a bool.

    Notes
    -----
    Small replicas of an ensemble are computed one per thread, large ones one after another, with the bits of a separate
    call on the same W (in a stack, W of up to 32 rows may be rounded otherwise than alone). Graphs of torch.compile and
    formulas compute them one by one.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> turn = it.Cayley(torch.tensor([1.0]))
    >>> x = torch.zeros(3, 1, 1)
    >>> it.recurrence(turn, x, torch.ones(2, 1), h0=torch.tensor([1.0, 0.0]), activation="identity")[:, 0]
    tensor([[ 0.,  1.],
            [-1.,  0.],
            [ 0., -1.]])

    An ensemble of four, on the same input:

    >>> turns = it.Cayley(torch.randn(4, 1))
    >>> it.recurrence(turns, torch.zeros(3, 1, 5, 1), torch.ones(2, 1)).shape
    torch.Size([3, 4, 5, 2])

    The last state, and gradients from less memory:

    >>> upper = torch.tensor([1.0], requires_grad=True)
    >>> long = {"h0": torch.tensor([1.0, 0.0]), "activation": "identity", "checkpoint": "reversible", "output": "last"}
    >>> last = it.recurrence(it.Cayley(upper), torch.zeros(4000, 1, 1), torch.ones(2, 1), **long)
    >>> last.sum().backward()
    >>> last.shape, upper.grad.shape
    (torch.Size([1, 2]), torch.Size([1]))
    """
    if not isinstance(transition, Operator):
        check.kind("transition", "an operator of isometry.torch", transition)
    check.choice("activation_on", activation_on, "all", "input")
    given = {"x": x, "input_weight": input_weight, "h0": h0, "bias": bias}
    given |= {"activation_bias": activation_bias, "start_state": start_state}
    own = (activation_on == "input",)
    options = Options(activation, slope, own, lengths, reverse, starts, backend, checkpoint, output)
    return run(RECURRENCE, transition, given, options)[0]
