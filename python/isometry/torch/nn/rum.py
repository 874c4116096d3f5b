"""RUM: the rotational unit of memory."""

from __future__ import annotations

import math
from typing import Literal, Unpack

from torch import Tensor, nn

from ..._cells import rum as cell
from ..._rules import check_recurrence
from ..rum import rum
from ._base import LayerKeywords, RecurrentLayer


class RUM(RecurrentLayer):
    r"""Rotational unit of memory (RUM): the state is turned by a rotation that input and state determine.

    .. math::

        (u'_t, \tau_t) = W h_{t-1} + U x_t + b, \qquad u_t = \sigma(u'_t), \qquad e_t = U_e x_t + b_e, \\
        R_t = R_{t-1}^\lambda \, \mathrm{Rotation}(e_t, \tau_t), \qquad
        h'_t = u_t * h_{t-1} + (1 - u_t) * \phi(e_t + R_t h_{t-1}), \qquad
        h_t = h'_t \text{ or } \eta \, h'_t / \|h'_t\|.

    With ``lam=1`` every call starts from :math:`R = I`: the memory is no part of ``h_0`` and ``h_n``
(``isometry.torch.rum`` takes and returns it).

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    lam : {0, 1}
        Whether rotations accumulate in an associative memory, a matrix of hidden_size^2 numbers for each sequence.
    eta : float, optional
        The length to which states are normalised; not at all if not given.
    nonlinearity : str
        phi, "relu" by default; for the modReLUs ``activation_bias`` is a parameter, or zero with ``bias=False``.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on.

    Attributes
    ----------
    weight_hh_l{k}[_reverse] : Parameter
        W (2 hidden_size, hidden_size): the rows of u', then of tau.
    weight_ih_l{k}[_reverse] : Parameter
        U (2 hidden_size, features).
    bias_l{k}[_reverse] : Parameter
        b (2 hidden_size).
    embed_weight_l{k}[_reverse], embed_bias_l{k}[_reverse] : Parameter
        U_e (hidden_size, features) and b_e (hidden_size).

    References
    ----------
    Dangovski, Jing, Nakov, Tatalović, Soljačić. Rotational unit of memory. TACL 2019.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.RUM(3, 8, eta=1.0)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    """

    _own_keywords = ("lam", "eta", "nonlinearity")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        lam: Literal[0, 1] = 0,
        eta: float | None = None,
        nonlinearity: str = "relu",
        **keywords: Unpack[LayerKeywords],
    ) -> None:
        self.lam = lam
        self.eta = eta
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    def _check_keywords(self) -> None:
        memory, _ = cell.setting(self.lam, self.eta)
        check_recurrence.checkpoint(self.checkpoint, affine=False, memory=memory)
        check_recurrence.activation(self.nonlinearity, "nonlinearity")
        even, per_unit = check_recurrence.ACTIVATIONS[self.nonlinearity]
        if even and self.hidden_size % 2:
            kind = f"nonlinearity {self.nonlinearity!r}"
            raise ValueError(f"hidden_size must be even with {kind}, not {self.hidden_size}")
        self._units = self.hidden_size // per_unit if per_unit else 0

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        n = self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_hh": (2 * n, n), "weight_ih": (2 * n, features)}
        shapes["embed_weight"] = (n, features)
        if self.bias:
            shapes |= {"bias": (2 * n,), "embed_bias": (n,)}
            shapes |= {"activation_bias": (self._units,)} if self._units else {}
        return shapes

    def _reset(self, suffix: str) -> None:
        for name in ("weight_hh", "weight_ih", "embed_weight"):
            weight = getattr(self, name + suffix)
            bound = math.sqrt(6 / (self.hidden_size + weight.size(1)))
            nn.init.uniform_(weight, -bound, bound)
        if self.bias:
            nn.init.zeros_(getattr(self, "bias" + suffix))
            nn.init.zeros_(getattr(self, "embed_bias" + suffix))
            if self._units:
                nn.init.zeros_(getattr(self, "activation_bias" + suffix))

    def _unbiased(self, x: Tensor) -> Tensor | None:
        """The bias of a modReLU in a layer with ``bias=False``."""
        return x.new_zeros(self._units, dtype=self._weight_dtype) if self._units else None

    def _run(
        self, suffix: str, x: Tensor, h0: Tensor | None, lengths: Tensor | None, reverse: bool, output: str
    ) -> Tensor:
        def own(name: str, given: bool = True) -> Tensor | None:
            return getattr(self, name + suffix) if given else None

        weights = own("weight_hh"), own("weight_ih"), own("bias", self.bias)
        states: Tensor
        states, _ = rum(
            x,
            *weights,  # type: ignore[arg-type]
            own("embed_weight"),  # type: ignore[arg-type]
            own("embed_bias", self.bias),
            h0=h0,
            lam=self.lam,
            eta=self.eta,
            activation=self.nonlinearity,
            activation_bias=own("activation_bias") if self.bias and self._units else self._unbiased(x),
            lengths=lengths,
            reverse=reverse,
            checkpoint=self.checkpoint,
            output=output,
        )
        return states
