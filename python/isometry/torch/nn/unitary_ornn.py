"""The unitary extension of the oRNN: W is a product of complex Householder reflections and a diagonal of phases."""

import math
from typing import Unpack, cast

import torch
from torch import Tensor

from ..._rules import check
from ..operators.householder import Householder
from ._contract import DivisibleKeywords
from ._transition import OrthogonalRNN


class UnitaryORNN(OrthogonalRNN):
    r"""Complex recurrent layer whose matrix is a product of Householder reflections and phases.

    .. math::

        h_t = \phi(W h_{t-1} + V x_t), \qquad
        W = H(u_n) \cdots H(u_{n-k+1}) \, \mathrm{diag}(e^{i\theta}), \qquad H(u) = I - 2 u u^H / \|u\|^2.

    With k = n - 1 every unitary W is reached. The states and the output are complex; a real input is promoted.

    Use it to continue a signal: ecg 0.653 with leaky ReLU, the best of the study, torch's GRU 0.454. Do not use it for
    state tracking: permutations 0.248 at best, `GRU` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    reflections : int, optional
        Number k of reflections, 0..hidden_size - 1; by default ``hidden_size - 1``.
    nonlinearity : str
        Any activation of :func:`isometry.torch.activate` that is defined for complex numbers.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V as pairs (hidden_size, features, 2).
    vectors_l{k}[_reverse] : Parameter
        U as pairs (hidden_size, reflections, 2), lower trapezoidal.
    phases_l{k}[_reverse] : Parameter
        theta (hidden_size,).
    activation_bias_l{k}[_reverse] or bias_l{k}[_reverse] : Parameter
        modReLU's bias (hidden_size,), or b as pairs (hidden_size, 2) with another activation.

    See Also
    --------
    ORNN : the real layer.
    ScuRNN : another unitary matrix.
    isometry.torch.Householder : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Mhammedi, Hellicar, Rahman, Bailey. Efficient orthogonal parametrisation of recurrent neural networks using
    Householder reflections. ICML 2017. Appendix on the unitary case.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.UnitaryORNN(3, 8)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, output.dtype
    (torch.Size([20, 5, 8]), torch.complex64)
    >>> readout = torch.nn.Linear(2 * 8, 2)  # of real and imaginary parts
    >>> readout(it.real_state(output)).shape
    torch.Size([20, 5, 2])
    """

    _own_keywords = ("reflections", "nonlinearity")
    is_complex = True
    _object, _trained = Householder, ("vectors", "phases")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        reflections: int | None = None,
        nonlinearity: str = "modrelu",
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        self.reflections = cast("int", reflections)  # checked below
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, **keywords)

    def _check_keywords(self) -> None:
        super()._check_keywords()
        given = self.reflections
        most = self._head_size - 1
        self.reflections = most if given is None else check.within("reflections", given, 0, most)

    def _sizes(self) -> dict[str, int]:
        return {"n": self._head_size, "m": self.reflections}

    def _draw_transition(self) -> dict[str, Tensor]:
        vectors = Householder.random(self._head_size, self.reflections, dtype=torch.complex128, device="cpu").vectors
        turns = torch.rand(self._head_size, dtype=torch.float64, device="cpu")
        return {"vectors": vectors, "phases": math.pi * (2 * turns - 1)}

    def _argument(self, name: str, suffix: str) -> Tensor:
        value = super()._argument(name, suffix)
        return value.tril() if name == "vectors" else value
