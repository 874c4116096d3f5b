"""KRU: W is a Kronecker product of small matrices."""

from collections.abc import Sequence
from typing import Any, Unpack, cast

import torch
from torch import Tensor

from ..._objects.kronecker import sizes
from ..._rules import check
from .._hooks import settle
from ..operators.kronecker import Kronecker
from ._contract import DivisibleKeywords
from ._transition import OrthogonalRNN


class KRU(OrthogonalRNN):
    r"""Recurrent layer whose matrix is a Kronecker product of small factors (KRU).

    .. math::

        h_t = \phi(W h_{t-1} + V x_t + b), \qquad W = W_0 \otimes W_1 \otimes \cdots \otimes W_{F-1}.

    The factors are unconstrained. They start orthogonal or unitary, and :meth:`penalty`, added to the loss, keeps them
    nearly so. A complex layer has complex states and output; a real input is promoted.

    Use it to reproduce inputs after many steps where parameters must be few: copying 1.000 with modReLU, torch's GRU
    0.152. Do not use it for state tracking: permutations 0.192, `GRU` 1.000.

    Parameters
    ----------
    input_size, hidden_size, num_layers
        As in ``torch.nn.RNN``.
    factor_sizes : sequence of int, optional
        Sizes of the square factors, whose product is ``hidden_size``; by default its prime factors, (2, 2, ...) for a
        power of two.
    complex : bool
        Whether the factors, and the states, are complex.
    nonlinearity : str
        Any activation of :func:`isometry.torch.activate` that is defined for the field. modReLU has its own bias in
        place of b.
    **keywords
        The keywords of :class:`ORNN` from ``bias`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V (hidden_size, features), complex as pairs in a last axis of length 2.
    factors_{f}_l{k}[_reverse] : Parameter
        W_f (size, size), complex as pairs.
    activation_bias_l{k}[_reverse] or bias_l{k}[_reverse] : Parameter
        modReLU's bias, or b.

    See Also
    --------
    EURNN, URNN : other matrices of few parameters.
    isometry.torch.Kronecker : the matrix.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`recurrent-layers` : how to use the layers.

    References
    ----------
    Jose, Cisse, Fleuret. Kronecker recurrent units. ICML 2018.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.KRU(3, 8)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, output.dtype
    (torch.Size([20, 5, 8]), torch.complex64)
    >>> readout = torch.nn.Linear(2 * 8, 2)  # of real and imaginary parts
    >>> readout(it.real_state(output)).shape
    torch.Size([20, 5, 2])
    >>> [tuple(p.shape) for p in layer.recurrent_parameters()]
    [(2, 2, 2), (2, 2, 2), (2, 2, 2)]
    >>> bool(layer.penalty() < 1e-10)
    True
    """

    _own_keywords = ("factor_sizes", "complex", "nonlinearity")
    _object = Kronecker

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        factor_sizes: Sequence[int] | None = None,
        complex: bool = True,
        nonlinearity: str = "modrelu",
        **keywords: Unpack[DivisibleKeywords],
    ) -> None:
        self.complex = self.is_complex = check.flag("complex", complex)
        self.factor_sizes = cast("tuple[int, ...]", factor_sizes)  # checked below
        super().__init__(input_size, hidden_size, num_layers, nonlinearity=nonlinearity, **keywords)

    def _check_keywords(self) -> None:
        super()._check_keywords()
        self.factor_sizes = tuple(sizes(self._head_size, self.factor_sizes))

    def _options(self) -> dict[str, Any]:
        return {"factor_sizes": self.factor_sizes}

    def _transition_shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"factors_{f}": self._of_heads(*self._stored(size, size)) for f, size in enumerate(self.factor_sizes)}

    def _draw_transition(self) -> dict[str, Tensor]:
        return {f"factors_{f}": factor for f, factor in enumerate(self._random().factors)}

    def _transition(self, suffix: str) -> Kronecker:
        return Kronecker(self._factors(suffix))

    def _inverse(self, w: Tensor, _suffix: str, bound: float) -> dict[str, Tensor]:
        size = float(torch.linalg.norm(w))
        found = Kronecker.from_matrix(w, self.factor_sizes, tol=bound / size if size else 0.0).factors
        return {f"factors_{f}": factor for f, factor in enumerate(found)}

    def _factors(self, suffix: str) -> list[Tensor]:
        return [self._value(f"factors_{f}{suffix}") for f in range(len(self.factor_sizes))]

    def penalty(self) -> Tensor:
        """The sum of ||W_f^H W_f - I||_F^2 over the factors of every layer and direction, differentiable.

        It is zero if and only if all factors are unitary. A multiple of it, added to the loss, keeps them near that.
        """
        settle(self, "penalty")
        terms = []
        for suffix in self._suffixes:
            for w in self._factors(suffix):
                excess = w.mH @ w - torch.eye(w.shape[-1], dtype=w.dtype, device=w.device)
                terms.append((excess.conj() * excess).real.sum())
        return torch.stack(terms).sum()
