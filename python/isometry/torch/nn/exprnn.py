"""expRNN: W is the exponential of a skew matrix."""

from typing import Unpack

from ..._rules import check
from ..operators.exponential import Exponential
from ._contract import DivisibleKeywords
from ._transition import OrthogonalRNN


class ExpRNN(OrthogonalRNN):
    r"""Recurrent layer whose matrix is the exponential of a skew-symmetric or skew-Hermitian matrix (expRNN).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t), \qquad W = \exp(A), \qquad A^H = -A.

    W is a rotation or, complex, a unitary matrix for all parameters. It starts with eigenvalues :math:`e^{\pm i t}` of
    angles uniform on [-pi, pi).

    Use it to continue a signal or to estimate a number from it: ecg 0.651 with leaky ReLU, torch's GRU 0.454. Do not
    use it for state tracking: permutations 0.231 at best, `GRU` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    complex : bool
        Complex states and a unitary W; the output is complex, a real input is promoted.
    nonlinearity : str, optional
        Any activation of :func:`isometry.torch.activate`, by default OPLU, leaky ReLU where the units of a head are
        odd, modReLU if complex; the paper has modReLU. modReLU has its own bias; the others have an additive one.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V (hidden_size, features); as pairs (hidden_size, features, 2) if complex.
    upper_l{k}[_reverse] : Parameter
        The entries of A above the diagonal, row by row; as pairs if complex.
    diagonal_l{k}[_reverse] : Parameter
        The imaginary parts of the diagonal of a complex A.
    activation_bias_l{k}[_reverse] or bias_l{k}[_reverse] : Parameter
        modReLU's bias, or b with another activation.

    See Also
    --------
    ScoRNN, ORNN : other orthogonal matrices.
    isometry.torch.Exponential : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Lezcano-Casado, Martínez-Rubio. Cheap orthogonal constraints in neural networks: a simple parametrization of the
    orthogonal and unitary group. ICML 2019.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.ExpRNN(3, 8)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    >>> output, h_n = it.nn.ExpRNN(3, 8, complex=True)(torch.randn(20, 5, 3))
    >>> output.dtype
    torch.complex64
    >>> readout = torch.nn.Linear(2 * 8, 2)  # of real and imaginary parts
    >>> readout(it.real_state(output)).shape
    torch.Size([20, 5, 2])
    """

    _own_keywords = ("complex", "nonlinearity")
    _object = Exponential

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        complex: bool = False,
        nonlinearity: str | None = None,
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        self.complex = self.is_complex = check.flag("complex", complex)
        self._trained = ("upper", "diagonal") if self.complex else ("upper",)
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, **keywords)

    def _best_nonlinearity(self) -> str:
        return "modrelu" if self.complex else self._oplu()
