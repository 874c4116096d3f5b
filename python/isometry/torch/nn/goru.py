"""GORU: the gated recurrent unit with an orthogonal matrix in its candidate."""

from typing import Any, Literal, Unpack

import torch
from torch import Tensor

from ..._objects import mesh
from ..._rules import check
from ..operators.cayley import Cayley
from ..operators.exponential import Exponential
from ..operators.householder import Householder
from ..operators.mesh import Mesh
from ._contract import DivisibleKeywords
from ._gates import GatedLayer
from ._reflections import reflecting, trapezoidal
from ._transition import TransitionLayer

#: By the names of the keyword ``transition``: the class of W, its trained arguments, and those that are buffers.
TRANSITIONS: dict[str, tuple[type[Any], tuple[str, ...], tuple[str, ...]]] = {
    "mesh": (Mesh, ("theta",), ()),
    "householder": (Householder, ("vectors",), ()),
    "cayley": (Cayley, ("upper",), ("signs",)),
    "exponential": (Exponential, ("upper",), ()),
}


class GORU(GatedLayer, TransitionLayer):
    r"""Gated orthogonal recurrent layer (GORU): a GRU with an orthogonal matrix in its candidate state.

    .. math::

        z_t = \sigma(W_z h_{t-1} + U_z x_t + b_z), \qquad r_t = \sigma(W_r h_{t-1} + U_r x_t + b_r), \\
        c_t = \phi(W (r_t * h_{t-1}) + U_h x_t + b_h), \qquad h_t = z_t * h_{t-1} + (1 - z_t) * c_t.

    With ``reset="after"`` :math:`c_t = \phi(r_t * (W h_{t-1}) + U_h x_t + b_h)`. W is orthogonal for all parameters.

    Use it for noisy or modulated signals and for text: with modReLU radio 0.812 and python 0.423, torch's GRU 0.150 and
    0.414. Do not use it to reproduce everything after many steps: copying 0.366 at best, `ScuRNN` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.GRU``.
    transition : {"mesh", "householder", "cayley", "exponential"}
        W: a real `Mesh` of ``capacity`` layers, a product of hidden_size - 1 Householder reflections, a scaled
        Cayley transform with half of its signs -1, or the exponential of a skew-symmetric matrix.
    reset : {"before", "after"}
        Whether the reset gate acts on the state before W, or on the product after it.
    nonlinearity : str
        phi, any activation of :func:`isometry.torch.activate`. modReLU has its own bias beside b_h.
    capacity : int, optional
        Number of layers of the mesh, by default 2; the other transitions have none.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``last_only`` and ``checkpoint``, here "none" or
        "sqrt".

    Attributes
    ----------
    weight_hh_l{k}[_reverse] : Parameter
        W_z and W_r (2, hidden_size, hidden_size).
    weight_ih_l{k}[_reverse] : Parameter
        U_z, U_r and U_h (3, hidden_size, features).
    theta_l{k}[_reverse], vectors_l{k}[_reverse] or upper_l{k}[_reverse] : Parameter
        The angles of the mesh, the reflection vectors (entries above the diagonal are ignored), or the entries of the
        skew-symmetric matrix above the diagonal, row by row.
    bias_l{k}[_reverse] : Parameter
        b_z, b_r and b_h (3, hidden_size).
    activation_bias_l{k}[_reverse] : Parameter
        modReLU's bias, with that activation.
    signs_l{k}[_reverse] : buffer
        The last factor of a Cayley transform.

    See Also
    --------
    GRU : an unconstrained matrix in its place.
    isometry.torch.goru : as a function.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    Notes
    -----
    W_z, W_r and U are drawn uniformly within +-sqrt(6 / (rows + columns)), the operator by the ``random`` of its
    class; biases are zero.

    References
    ----------
    Jing et al. Gated orthogonal recurrent units: On learning to forget. Neural Computation 31 (2019).

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.GORU(3, 8, transition="cayley")
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    >>> w = layer.recurrent_matrix()
    >>> torch.allclose(w.T @ w, torch.eye(8), atol=1e-5)
    True
    """

    _own_keywords = ("transition", "reset", "nonlinearity", "capacity")
    _cell = "goru"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        transition: Literal["mesh", "householder", "cayley", "exponential"] = "mesh",
        reset: Literal["before", "after"] = "before",
        nonlinearity: str = "modrelu",
        capacity: int | None = None,
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        check.choice("transition", transition, *TRANSITIONS)
        self.transition, self.reset, self.nonlinearity = transition, reset, nonlinearity
        if transition == "mesh":
            capacity = check.count("capacity", 2 if capacity is None else capacity, 1)
        elif capacity is not None:
            raise ValueError(
                f"capacity must be None with transition {transition!r}, which is no mesh, not {capacity!r}"
            )
        self.capacity = capacity
        self._object, self._trained, self._untrained = TRANSITIONS[transition]
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    def _sizes(self) -> dict[str, int]:
        n = self._head_size
        return {"n": n, "m": max(n - 1, 1), "pairs": mesh.count(n, self.capacity or 0, 1)}

    def _options(self) -> dict[str, Any]:
        own: dict[str, dict[str, Any]] = {
            "mesh": {"n": self._head_size, "layers": self.capacity},
            "householder": {"m": self._sizes()["m"]},
        }
        return own.get(self.transition, {})

    def _fixed(self) -> dict[str, Tensor]:
        n = self._head_size
        signs = torch.ones(n, device="cpu")
        signs[n - n // 2 :] = -1
        return dict.fromkeys(self._untrained, signs)

    def _transition(self, suffix: str) -> Any:
        if self.transition == "householder":
            return reflecting(Householder.from_trapezoid, self._read("vectors" + suffix), trapezoidal)
        return super()._transition(suffix)

    def _inverse(self, w: Tensor, suffix: str, bound: float) -> dict[str, Tensor]:
        if self.transition == "householder" and self._head_size == 1:  # no reflection, the sign alone
            return {"vectors": self._nearest(w, bound)}
        return super()._inverse(w, suffix, bound)

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        shapes = super()._shapes(features) | self._transition_shapes()
        return shapes | {"activation_bias": (self._biased_units,)} if self.bias and self._biased_units else shapes

    def _reset(self, suffix: str) -> None:
        super()._reset(suffix)
        self._reset_transition(suffix)

    @property
    def _activation(self) -> str:
        return self.nonlinearity

    def _arrays(self, suffix: str) -> dict[str, Tensor | None]:
        return super()._arrays(suffix) | {"activation_bias": self._activation_bias(suffix)}
