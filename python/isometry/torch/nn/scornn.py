"""scoRNN: W is a scaled Cayley transform of a skew-symmetric matrix."""

from typing import Any, Unpack, cast

import torch
from torch import Tensor

from ..._rules import check
from ..operators.cayley import Cayley
from ._contract import DivisibleKeywords
from ._transition import OrthogonalRNN


class ScoRNN(OrthogonalRNN):
    r"""Recurrent layer whose matrix is a scaled Cayley transform (scoRNN).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t), \qquad W = (I + A)^{-1} (I - A) D, \qquad A^T = -A,

    with a fixed diagonal D, its last ``negative_ones`` entries -1 and the others 1. W is orthogonal for all
    parameters, and :math:`\det W = (-1)^{\rho}`.

    Use it to reproduce inputs after many steps: copying 0.999 with modReLU, torch's GRU 0.152. Do not use it for text:
    english 0.394 at best, `GRU` 0.462.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    negative_ones : int, optional
        Number rho of entries -1 in D, 0..hidden_size, by default ``hidden_size // 2``; with ``heads`` of each block and
        its units. It determines how many eigenvalues start in the left half plane.
    nonlinearity : str, optional
        Any activation of :func:`isometry.torch.activate`, by default OPLU, or leaky ReLU where the units of a head are
        odd; the paper has modReLU. modReLU has its own bias; the others have an additive one.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V (hidden_size, features).
    upper_l{k}[_reverse] : Parameter
        The entries of A above the diagonal, row by row.
    activation_bias_l{k}[_reverse] or bias_l{k}[_reverse] : Parameter
        modReLU's bias, or b with another activation.
    signs_l{k}[_reverse] : buffer
        The diagonal of D.

    See Also
    --------
    ORNN, ExpRNN : other orthogonal matrices.
    ScuRNN : the complex layer.
    isometry.torch.Cayley : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Helfrich, Willmott, Ye. Orthogonal recurrent neural networks with scaled Cayley transform. ICML 2018.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.ScoRNN(3, 8, negative_ones=3)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    >>> round(torch.linalg.det(layer.recurrent_matrix()).item(), 3)
    -1.0
    """

    _own_keywords = ("negative_ones", "nonlinearity")
    _object, _trained, _untrained = Cayley, ("upper",), ("signs",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        negative_ones: int | None = None,
        nonlinearity: str | None = None,
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        self.negative_ones = cast("int", negative_ones)  # checked below
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, **keywords)

    def _best_nonlinearity(self) -> str:
        return self._oplu()

    def _check_keywords(self) -> None:
        super()._check_keywords()
        n, given = self._head_size, self.negative_ones
        self.negative_ones = check.within("negative_ones", n // 2 if given is None else given, 0, n)

    signs_l0: Tensor

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        if not self.signs_l0.is_meta:  # D is determined by the loaded buffers
            self.negative_ones = int((self.signs_l0 < 0).sum()) // self._heads

    def _fixed(self) -> dict[str, Tensor]:
        signs = torch.ones(self._head_size, device="cpu")
        signs[self._head_size - self.negative_ones :] = -1
        return {"signs": signs}
