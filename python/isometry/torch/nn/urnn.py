"""uRNN: W is a product of diagonals, reflections and Fourier transforms."""

import torch
from torch import Tensor

from ..operators.fourier import FourierProduct
from ._transition import OrthogonalRNN


class URNN(OrthogonalRNN):
    r"""Complex recurrent layer whose matrix is a product of diagonals, reflections and Fourier transforms (uRNN).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t), \qquad W = D_3 R_2 F^{-1} D_2 \Pi R_1 F D_1.

    W is unitary, has 7 ``hidden_size`` real parameters, and costs O(n log n) per state. The permutation is drawn with
    the initial values and not trained. The states and the output are complex; a real input is promoted.

    Use it to reproduce inputs after many steps with few parameters: copying 1.000 with modReLU, torch's GRU 0.152. Do
    not use it for a noisy signal: tones 0.436 at best, `ORNN` 0.984.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    nonlinearity : str
        Any activation of :func:`isometry.torch.activate` that is defined for complex numbers.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V as pairs (hidden_size, features, 2).
    phases_l{k}[_reverse] : Parameter
        The angles of D1, D2, D3 (3, hidden_size).
    vectors_l{k}[_reverse] : Parameter
        The reflection vectors of R1, R2 as pairs (2, hidden_size, 2).
    permutation_l{k}[_reverse] : buffer
        The permutation (hidden_size,).
    activation_bias_l{k}[_reverse] or bias_l{k}[_reverse] : Parameter
        modReLU's bias (hidden_size,), or b as pairs (hidden_size, 2) with another activation.

    See Also
    --------
    EURNN, KRU : other matrices of few parameters.
    isometry.torch.FourierProduct : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Arjovsky, Shah, Bengio. Unitary evolution recurrent neural networks. ICML 2016.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.URNN(3, 8)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, output.dtype
    (torch.Size([20, 5, 8]), torch.complex64)
    >>> readout = torch.nn.Linear(2 * 8, 2)  # of real and imaginary parts
    >>> readout(it.real_state(output)).shape
    torch.Size([20, 5, 2])
    """

    is_complex = True
    _object, _trained, _untrained = FourierProduct, ("phases", "vectors"), ("permutation",)

    def _fixed(self) -> dict[str, Tensor]:
        return {"permutation": torch.arange(self._head_size, device="cpu")}

    def _draw_transition(self) -> dict[str, Tensor]:
        # the permutation is a buffer whose value is drawn too
        drawn = self._random()
        return {name: getattr(drawn, name) for name in (*self._trained, *self._untrained)}
