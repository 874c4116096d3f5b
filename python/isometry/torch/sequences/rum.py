"""The rotational unit of memory over a whole sequence in one call."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from ..._cells.rum import RUM, setting
from ._sequence import Given, Options, beside, run


def rum(
    x: Tensor,
    w: Tensor,
    u: Tensor,
    b: Tensor | None,
    embed_weight: Tensor,
    embed_bias: Tensor | None,
    *,
    h0: Tensor | None = None,
    r0: Tensor | None = None,
    lam: int = 0,
    eta: float | None = None,
    activation: str = "relu",
    activation_bias: Tensor | None = None,
    slope: float = 0.1,
    lengths: Tensor | Sequence[int] | None = None,
    reverse: bool = False,
    backend: str | None = None,
    checkpoint: Literal["none", "sqrt", "reversible"] = "none",
    output: Literal["states", "last"] = "states",
    starts: Tensor | None = None,
    start_state: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    r"""All states of a rotational unit of memory (RUM), and its associative memory after them.

    .. math::

        (u'_t, \tau_t) = W h_{t-1} + U x_t + b, \qquad u_t = \sigma(u'_t), \qquad e_t = U_e x_t + b_e, \\
        R_t = R_{t-1}^\lambda \, \mathrm{Rotation}(e_t, \tau_t), \qquad k_t = \phi(e_t + R_t h_{t-1}), \\
        h'_t = u_t * h_{t-1} + (1 - u_t) * k_t, \qquad h_t = h'_t \text{ or } \eta \, h'_t / \|h'_t\|.

    Rotation(e, tau) turns e's direction to tau's in their plane and leaves everything orthogonal to it (see
    `Rotation`). With lam = 0 a step costs O(n) besides its products and keeps no matrix; with lam = 1 the product of
    all rotations, one n x n matrix for each sequence, is a part of the state.

    Parameters
    ----------
    x : Tensor, shape (T, B, d)
        The input, real.
    w : Tensor, shape (2n, n)
        W: the rows of u', then those of tau.
    u : Tensor, shape (2n, d)
        U, in the same order.
    b : Tensor, shape (2n,), or None
        b, zero if None.
    embed_weight : Tensor, shape (n, d)
        U_e.
    embed_bias : Tensor, shape (n,), or None
        b_e, zero if None.
    h0 : Tensor, shape (B, n) or (n,), optional
        The state before the first step, zero if not given.
    r0 : Tensor, shape (B, n, n) or (n, n), optional
        The memory before the first step, the identity if not given; with lam = 1 only. Not required to be orthogonal.
    lam : {0, 1}
        lambda: whether rotations accumulate.
    eta : float, optional
        The length to which states are normalised; not at all if not given. A zero state stays zero.
    activation : str
        phi, one of the names of `activate`.
    activation_bias : Tensor, optional
        The bias of modReLU.
    slope : float
        The slope of "leaky_relu".
    lengths : Tensor or sequence of int, shape (B,), optional
        The length of each sequence, from 0 to T. States past the end are zero; the memory is that after the last step.
    reverse : bool
        Whether each sequence is read from its own end; states keep the position of their input.
    backend : {"cpu", "gpu"}, optional
        Where the kernels run; by default as `use_backend` says. The GPU takes float32 and no starts.
    checkpoint : {"none", "sqrt"}
        The states and gates that are saved for backward. "none": all. "sqrt": some sqrt(T) states, between which
        segments are computed again; states and gradients are the same to the last bit. For lam = 0 only.
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
    states : Tensor, shape (T, B, n), or (B, n) with output "last"
    r_last : Tensor, shape (B, n, n), or None
        The memory after the last step of each sequence, with lam = 1.

    Raises
    ------
    ValueError
        Shapes that do not fit, T, B or n of 0, lam not 0 or 1, eta not positive, r0 with lam = 0, lengths outside 0..T,
        unknown names.
    TypeError
        Arguments other than real tensors of one precision, lengths that are not integers, a reverse that is not a bool.
    NotImplementedError
        starts with the backend "gpu".

    Notes
    -----
    Costs per step and sequence: 4 n^2 + 6 n d flops, and with lam = 1 another 10 n^2; backward about twice that.
    No step saves its memory for backward: backward starts from the last memory and applies the inverse rotations one by
    one. The rounding errors of this add up without being amplified: after T steps they are below T eps.

    An ensemble is E recurrences of the same sizes in one call: x of shape (T, E, B, d), or (T, 1, B, d) for all
    replicas; the other arrays may have the replicas as a further first axis, w (E, 2n, n), h0 (E, B, n) and so on.
    Its states are (T, E, B, n), its memories (E, B, n, n). It takes no checkpoint.

    References
    ----------
    Dangovski, Jing, Nakov, Tatalović, Soljačić. Rotational unit of memory. TACL 2019.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> x, w, u = torch.randn(20, 5, 3), torch.randn(16, 8), torch.randn(16, 3)
    >>> states, memory = it.rum(x, w, u, None, torch.randn(8, 3), None, lam=1, eta=1.0)
    >>> states.shape, memory.shape
    (torch.Size([20, 5, 8]), torch.Size([5, 8, 8]))
    >>> torch.allclose(states.norm(dim=-1), torch.tensor(1.0))
    True
    >>> torch.allclose(memory.mT @ memory, torch.eye(8), atol=1e-4)
    True
    """
    given = {"x": x, "w": w, "u": u, "b": b, "embed_weight": embed_weight, "embed_bias": embed_bias, "h0": h0, "r0": r0}
    given |= {"activation_bias": activation_bias, "start_state": start_state}
    own = setting(lam, eta, r0)
    options = Options(activation, slope, own, lengths, reverse, starts, backend, checkpoint, output)
    return run(RUM, None, given, options, _packed)


def _packed(tensors: Given) -> Given:
    """The kernels take U and U_e stacked, and their biases too."""
    weight, own, bias = tensors.pop("embed_weight"), tensors["u"], tensors.pop("embed_bias")
    b, n, join = tensors["b"], weight.shape[-2], torch.cat if weight.dim() == 2 else beside
    if b is not None or bias is not None:
        b = own.new_zeros(2 * n) if b is None else b
        b = join([b, own.new_zeros(n) if bias is None else bias], -1)
    return {**tensors, "u": join([own, weight], -2), "b": b}
