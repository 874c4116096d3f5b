"""Soft oRNN: W has singular values within a margin around 1."""

from typing import Any, Unpack

from torch import Tensor

from ..._objects.bounded_svd import margin_of
from ..operators.bounded_svd import BoundedSvd
from ..operators.householder import Householder
from ._contract import DivisibleKeywords
from ._reflections import reflecting, signed, trapezoidal
from ._transition import OrthogonalRNN


class SoftORNN(OrthogonalRNN):
    r"""Recurrent layer whose matrix has singular values within a margin of 1 (soft oRNN).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t + b), \qquad
        W = U \, \mathrm{diag}(\sigma) \, V'^T, \qquad \sigma_i = 1 + \mathrm{margin} \, \tanh(p_i / 2).

    U and V' are orthogonal for all parameters: products of reflections, as in :class:`ORNN` with ``hidden_size``
    reflections. So the singular values of W lie within the margin around 1; with margin 0 W is orthogonal.

    Use it to classify short sequences: digits 0.985 with OPLU, the best of the study. Do not use it for longer ones:
    osuleaf 0.383 at best, `RUM` 0.657.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    margin : float
        In [0, 1].
    nonlinearity : str
        Any activation of :func:`isometry.torch.activate`. modReLU has its own bias in place of b.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V (hidden_size, features).
    u_l{k}[_reverse], v_l{k}[_reverse] : Parameter
        The reflections of U and V' (hidden_size, hidden_size), one vector per column; entries above the diagonal are
        ignored. Of the last column only the sign of the last entry is used, which is that of the determinant; its
        gradient is straight-through, that of the sign as if it were the entry itself.
    logits_l{k}[_reverse] : Parameter
        p (hidden_size,), zero at the start.
    bias_l{k}[_reverse] or activation_bias_l{k}[_reverse] : Parameter
        b, or modReLU's bias.

    See Also
    --------
    ORNN : exactly orthogonal.
    isometry.torch.BoundedSvd : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Vorontsov, Trabelsi, Kadoury, Pal. On orthogonality and learning recurrent networks with long term dependencies.
    ICML 2017.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.SoftORNN(3, 8, margin=0.2)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    >>> layer.logits_l0.data.fill_(50.0)
    tensor([50., 50., 50., 50., 50., 50., 50., 50.])
    >>> torch.allclose(torch.linalg.svdvals(layer.recurrent_matrix()), torch.tensor(1.2))
    True
    """

    _own_keywords = ("margin", "nonlinearity")
    _object, _trained = BoundedSvd, ("u", "logits", "v")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        margin: float = 0.1,
        nonlinearity: str = "tanh",
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        self.margin = margin
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, **keywords)

    def _check_keywords(self) -> None:
        super()._check_keywords()
        self.margin = margin_of(self.margin)

    def _sizes(self) -> dict[str, int]:
        return dict.fromkeys(("n", "r", "k"), self._head_size)

    def _options(self) -> dict[str, Any]:
        return {"margin": self.margin}

    def _draw_transition(self) -> dict[str, Tensor]:
        drawn = super()._draw_transition()
        return {**drawn, "u": _trapezoid(drawn["u"]), "v": _trapezoid(drawn["v"])}

    def _argument(self, name: str, suffix: str) -> Tensor:
        stored = super()._argument(name, suffix)
        return stored if name == "logits" else reflecting(Householder.from_trapezoid, stored, trapezoidal).matrix()


def _trapezoid(w: Tensor) -> Tensor:
    """The parameters of an orthogonal matrix: its reflections, and in the last column the sign."""
    op = Householder.from_matrix(w)
    return signed(op.vectors, op.sign)
