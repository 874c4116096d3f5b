"""scuRNN: W is a complex scaled Cayley transform."""

from typing import Unpack

from ..operators.cayley import Cayley
from ._contract import DivisibleKeywords
from ._transition import OrthogonalRNN


class ScuRNN(OrthogonalRNN):
    r"""Complex recurrent layer whose matrix is a scaled Cayley transform (scuRNN).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t), \qquad
        W = (I + A)^{-1} (I - A) \, \mathrm{diag}(e^{i\theta}), \qquad A^H = -A.

    The phases theta are trained. The states and the output are complex; a real input is promoted.

    Use it to reproduce inputs after many steps, copying 1.000 with modReLU, and as the complex layer that is best on
    average, 0.79 of the best with leaky ReLU. Do not use it where a few of many inputs must be remembered: cue 0.124 at
    best, `RUM` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    nonlinearity : str
        Any activation of :func:`isometry.torch.activate` that is defined for complex numbers; the paper has modReLU.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V as pairs (hidden_size, features, 2).
    upper_l{k}[_reverse] : Parameter
        The entries of A above the diagonal, row by row, as pairs.
    diagonal_l{k}[_reverse] : Parameter
        The imaginary parts of the diagonal of A.
    phases_l{k}[_reverse] : Parameter
        theta (hidden_size,).
    activation_bias_l{k}[_reverse] or bias_l{k}[_reverse] : Parameter
        modReLU's bias (hidden_size,), or b as pairs (hidden_size, 2) with another activation.

    See Also
    --------
    ScoRNN : the real layer.
    UnitaryORNN : another unitary matrix.
    isometry.torch.Cayley : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Maduranga, Helfrich, Ye. Complex unitary recurrent neural networks using scaled Cayley transform. AAAI 2019.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.ScuRNN(3, 8)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, output.dtype
    (torch.Size([20, 5, 8]), torch.complex64)
    >>> readout = torch.nn.Linear(2 * 8, 2)  # of real and imaginary parts
    >>> readout(it.real_state(output)).shape
    torch.Size([20, 5, 2])
    """

    is_complex = True
    _object, _trained = Cayley, ("upper", "diagonal", "phases")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        nonlinearity: str = "leaky_relu",
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, **keywords)
