"""oRNN: W is a product of real Householder reflections."""

from typing import Literal, Unpack, cast

import torch
from torch import Tensor

from ..._objects.householder import trapezoid
from ..._rules import check, check_recurrence
from ..operators.householder import Householder
from ._contract import DivisibleKeywords
from ._reflections import reflecting, scaled, signed, trapezoidal
from ._transition import OrthogonalRNN


class ORNN(OrthogonalRNN):
    r"""Recurrent layer whose matrix is a product of Householder reflections (oRNN).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t + b), \qquad
        W = H(u_n) H(u_{n-1}) \cdots H(u_{n-m+1}), \qquad H(u) = I - 2 u u^T / \|u\|^2,

    where :math:`u_k` is zero in its first n - k entries. With m = n the last factor is :math:`\mathrm{diag}(1, \dots,
    1, \pm 1)`, with the sign of the last entry :math:`u_1` of ``vectors``, and W reaches every orthogonal matrix. W is
    orthogonal for all parameters.

    Use it to classify sequences of up to a hundred steps: with OPLU basic-motions 1.000 and digits 0.979, torch's GRU
    0.933 and 0.873. Do not use it where a few of many inputs must be remembered: cue 0.145 at best, `RUM` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    reflections : int, optional
        Number m of reflections, 1..hidden_size; by default ``hidden_size``. Fewer are cheaper.
    sign : {"hard", "soft"}
        For m = n: s = sign(u_1) with a straight-through gradient, or s = u_1 clamped to [-1, 1] in forward. With "soft"
        W is orthogonal only while abs(s) = 1.
    nonlinearity : str
        Any activation of :func:`isometry.torch.activate`. modReLU has its own bias in place of b.
    slope : float
        Slope of ``"leaky_relu"`` for negative arguments, in [0, 1).
    **keywords
        ``bias``, ``batch_first``, ``dropout``, ``bidirectional``, ``device``, ``dtype`` as in ``torch.nn.RNN``;
        ``heads`` (1): W consists of so many blocks of ``hidden_size / heads`` units along its diagonal, whose
        parameters have a leading axis of heads, and the keywords above are those of a block;
        ``trainable_h0`` (False): the initial states are parameters, used when none are passed; ``checkpoint`` ("none",
        "sqrt" or "reversible"): which states are saved for backward, as in :func:`isometry.torch.recurrence`;
        ``last_only`` (False): the output is only the last state of each sequence.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V (hidden_size, features).
    vectors_l{k}[_reverse] : Parameter
        U (hidden_size, reflections), one vector per column; entries above the diagonal are ignored.
    bias_l{k}[_reverse] or activation_bias_l{k}[_reverse] : Parameter
        b, or modReLU's bias.

    See Also
    --------
    ScoRNN, ExpRNN : other orthogonal matrices, from fewer parameters.
    UnitaryORNN : the complex layer.
    isometry.torch.Householder : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Mhammedi, Hellicar, Rahman, Bailey. Efficient orthogonal parametrisation of recurrent neural networks using
    Householder reflections. ICML 2017.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.ORNN(3, 8, reflections=4)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    >>> w = layer.recurrent_matrix()
    >>> torch.allclose(w.T @ w, torch.eye(8), atol=1e-5)
    True
    """

    _own_keywords = ("reflections", "sign", "nonlinearity", "slope")
    _object, _trained = Householder, ("vectors",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        reflections: int | None = None,
        sign: Literal["hard", "soft"] = "hard",
        nonlinearity: str = "leaky_relu",
        slope: float = 0.1,
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        self.reflections = cast("int", reflections)  # checked below
        self.sign = sign
        self.slope = slope
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, **keywords)

    def _check_keywords(self) -> None:
        n, given = self._head_size, self.reflections
        self.reflections = check.within("reflections", n if given is None else given, 1, n)
        super()._check_keywords()
        trapezoid((n, self.reflections), self.sign)
        check_recurrence.slope(self.slope)

    def _unitary(self) -> bool:
        return self.reflections < self._head_size or self.sign == "hard"

    def _sizes(self) -> dict[str, int]:
        return {"n": self._head_size, "m": self.reflections}

    def _draw_transition(self) -> dict[str, Tensor]:
        n, m = self._head_size, self.reflections
        vectors = Householder.random(n, min(m, n - 1), dtype=torch.float64, device="cpu").vectors
        return {"vectors": vectors if m < n else signed(vectors, 1)}

    def _inverse(self, w: Tensor, _suffix: str, bound: float) -> dict[str, Tensor]:
        found = Householder.from_matrix(self._nearest(w, bound))
        whole = self.reflections == self._head_size
        return {"vectors": signed(found.vectors, found.sign) if whole else found.vectors}

    def _transition(self, suffix: str) -> Householder:
        u = self._read("vectors" + suffix)
        if self.reflections < self._head_size or self.sign == "hard":
            return reflecting(Householder.from_trapezoid, u, trapezoidal)
        last = u[..., -1, -1]
        # s is the clamped value with the gradient of u_1, so that u_1 can leave [-1, 1] and return.
        sign = last.detach().clamp(-1, 1) + (last - last.detach())
        return reflecting(lambda vectors: Householder(vectors, sign=sign), u[..., :-1].tril(), scaled)
