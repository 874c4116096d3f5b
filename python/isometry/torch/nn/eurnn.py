"""EURNN: W is a mesh of 2 x 2 blocks, tunable or in the layout of the fast Fourier transform."""

from typing import Any, Literal, Unpack, cast

from ..._objects import mesh
from ..._rules import check
from ..operators.mesh import Mesh
from ._contract import DivisibleKeywords
from ._transition import OrthogonalRNN


class EURNN(OrthogonalRNN):
    r"""Recurrent layer whose matrix is a mesh of 2 x 2 blocks (EURNN).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t), \qquad W = D F_1 F_2 \cdots F_L,

    where each layer F has blocks on disjoint pairs of units, and D is a diagonal of phases; see
    :class:`isometry.torch.Mesh`. A step costs 9 n L operations, 3 n L if real. The states and the output are complex by
    default; a real input is promoted.

    Use it to reproduce inputs after many steps with few parameters: copying 1.000 with modReLU, torch's GRU 0.152. Do
    not use it for a noisy signal: tones 0.329 at best, `ORNN` 0.984.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    capacity : int, optional
        Number L of layers of the mesh, at least 1, by default 2; L = hidden_size reaches every unitary W. The fft
        layout has log2(hidden_size), and takes no other.
    layout : {"brick", "fft"}
        Pairs of neighbours, or at the distances n/2, n/4, ..., 1 (hidden_size is a power of two).
    complex : bool
        Whether states are complex. A real W has no phases and D = I.
    nonlinearity : str
        Any activation of :func:`isometry.torch.activate` that is defined for the numbers of the layer.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V (hidden_size, features), as pairs if complex.
    theta_l{k}[_reverse] : Parameter
        The angles of the blocks, the leftmost layer of the mesh first.
    phi_l{k}[_reverse], phases_l{k}[_reverse] : Parameter
        The phases of the blocks and of D, if complex.
    activation_bias_l{k}[_reverse] or bias_l{k}[_reverse] : Parameter
        modReLU's bias (hidden_size,), or b with another activation.

    See Also
    --------
    URNN, KRU : other matrices of few parameters.
    isometry.torch.Mesh : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Jing, Shen, Dubček, Peurifoy, Skirlo, LeCun, Tegmark, Soljačić. Tunable efficient unitary neural networks (EUNN) and
    their application to RNNs. ICML 2017.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.EURNN(3, 8, capacity=4)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, output.dtype
    (torch.Size([20, 5, 8]), torch.complex64)
    >>> readout = torch.nn.Linear(2 * 8, 2)  # of real and imaginary parts
    >>> readout(it.real_state(output)).shape
    torch.Size([20, 5, 2])
    """

    _own_keywords = ("capacity", "layout", "complex", "nonlinearity")
    _object = Mesh

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        capacity: int | None = None,
        layout: Literal["brick", "fft"] = "brick",
        complex: bool = True,
        nonlinearity: str = "modrelu",
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        self.capacity, self.layout = cast("int", capacity), layout  # checked below
        self.complex = self.is_complex = check.flag("complex", complex)
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, **keywords)

    def _check_keywords(self) -> None:
        super()._check_keywords()
        check.choice("layout", self.layout, "brick", "fft")
        n, layout, depth, given = self._head_size, self.layout, 2, self.capacity
        if layout == "fft":
            depth = n.bit_length() - 1
            if n != 1 << depth:
                what = "hidden_size" if self._heads == 1 else "hidden_size / heads"
                raise ValueError(f"{what} must be a power of two with layout 'fft', not {n}")
        self.capacity = depth if given is None else check.count("capacity", given, 1)
        if layout == "fft" and self.capacity != depth:
            raise ValueError(f"capacity must be log2(hidden_size) = {depth} with layout 'fft', not {self.capacity}")
        self._frame = mesh.frame(n, self.capacity, layout, "left")
        self._trained = ("theta", "phi", "phases") if self.is_complex else ("theta",)

    def _sizes(self) -> dict[str, int]:
        return {"n": self._head_size, "pairs": mesh.count(*self._frame[:3])}

    def _options(self) -> dict[str, Any]:
        return {"n": self._head_size, "layers": self.capacity, "layout": self.layout}
