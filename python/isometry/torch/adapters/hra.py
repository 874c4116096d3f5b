"""Householder reflection adaptation: inputs are turned by a product of few reflections."""

import math
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..._rules import check
from .._dispatch.function import widened
from .._dispatch.mode import symbolic
from .._dispatch.private import has_global_hooks
from ..delta.delta_rule import real
from ..nn._reflections import reflecting, scaled
from ..operators.householder import Householder
from ._adapter import Adapter, arithmetic, empty, is_product, real_layer


class HRA(Adapter):
    """Householder reflection adaptation (HRA) of a linear layer: its input is multiplied by r reflections.

    y = linear(H x) with H = H(u_0) ... H(u_{r-1}) and H(u) = I - 2 u u^T / ||u||^2. H starts as the identity: the
    vectors of each pair u_{2k}, u_{2k+1} are equal. The given layer is frozen: ``requires_grad`` of its parameters
    becomes False.

    Parameters
    ----------
    linear : torch.nn.Linear
        The layer to adapt, real.
    r : int
        The number of reflections, even and at least 2.

    Attributes
    ----------
    linear : torch.nn.Linear
        The given layer.
    vectors : torch.nn.Parameter, shape (in_features, r)
        The columns are the u_j; only their directions matter, and a column that has become zero stands for the last
        unit vector. float32 beside a layer in half precision, else of the layer's dtype.

    Raises
    ------
    TypeError
        If linear is no ``torch.nn.Linear`` or complex.
    ValueError
        If r is odd or less than 2, or linear a ``torch.nn.LazyLinear`` without a weight yet.

    See Also
    --------
    OFT : blocks instead of reflections.
    attach : adapts all layers of a model.
    :doc:`orthogonal-weights` : adapters, with their costs.

    Notes
    -----
    H is applied in its compact WY form to the inputs or, where that takes fewer operations, to the rows of the weight:
    4 r in_features operations for each, twice as many in backward, where the weight needs a further product of
    2 in_features out_features operations per input. No matrix of in_features^2 elements is formed. float16 and bfloat16
    are computed in float32 and rounded once, before the layer.

    References
    ----------
    Yuan, Liu, Xu: Bridging the gap between low-rank and orthogonal adaptation via Householder reflection adaptation,
    NeurIPS 2024.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> linear, x = torch.nn.Linear(8, 3), torch.randn(5, 8)
    >>> adapter = it.adapters.HRA(linear, r=2)
    >>> torch.allclose(adapter(x), linear(x), atol=1e-5)
    True
    >>> adapter.vectors.shape
    torch.Size([8, 2])
    """

    vectors: nn.Parameter
    _trained = "vectors"

    def __init__(self, linear: nn.Linear, r: int = 8) -> None:
        n, r = real_layer(linear).in_features, check.count("r", r, 2)
        if r % 2:
            raise ValueError(f"r must be even, so that pairs of equal reflections are the identity, not {r}")
        vectors = empty(linear, n, r)
        super().__init__(linear)
        self.vectors = vectors
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw a vector for each pair of reflections; H is the identity."""
        with torch.no_grad():
            nn.init.kaiming_uniform_(self.vectors[:, ::2], a=math.sqrt(5))
            self.vectors[:, 1::2] = self.vectors[:, ::2]

    def forward(self, x: Tensor) -> Tensor:
        """linear(H x) for rows x (..., in_features)."""
        linear = self.linear
        arithmetic(x, self.vectors, linear.in_features)
        if self._on_weight(x):
            return functional.linear(x, self._turned_weight().to(linear.weight.dtype), linear.bias)
        return linear(self.rotate(x))

    def rotate(self, x: Tensor) -> Tensor:
        """H x for rows x (..., in_features), in the dtype of x."""
        own = arithmetic(x, self.vectors, self.in_features)
        return reflections(widened(self.vectors)).apply(x.to(own)).to(x.dtype)

    def _on_weight(self, x: Tensor) -> bool:
        """Whether to turn the rows of the weight, whose gradient costs a product of the size of the layer's own."""
        linear, r = self.linear, self.vectors.shape[1]
        if symbolic() or not is_product(linear) or has_global_hooks():  # a graph serves any number of inputs
            return False
        inputs = math.prod(x.shape[:-1])
        trained = torch.is_grad_enabled() and self.vectors.requires_grad
        of_gradient = inputs * linear.out_features if trained else 0
        return of_gradient + 6 * r * linear.out_features < 6 * r * inputs

    def _turned_weight(self) -> Tensor:
        return reflections(widened(self.vectors)).apply_adjoint(widened(self.linear.weight))

    def extra_repr(self) -> str:
        return f"r={self.vectors.shape[1]}"

    # ------------------------------------------------------------ the layout of PEFT

    @classmethod
    def from_peft(cls, linear: nn.Linear, u: Tensor, *, apply_GS: bool = False) -> Self:
        """The adapter of a layer with the weights of an HRA layer of the package peft.

        Parameters
        ----------
        linear : torch.nn.Linear
            The layer to adapt.
        u : Tensor, shape (in_features, r)
            ``hra_u`` of the layer's adapter; r may be odd.
        apply_GS : bool
            As in the HRAConfig: the columns are orthonormalised, once.

        Raises
        ------
        TypeError
            If u is no real tensor.
        ValueError
            If the shape of u is not (in_features, r), or if r exceeds in_features with ``apply_GS``.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> u = torch.randn(4, 2)
        >>> torch.equal(it.adapters.HRA.from_peft(torch.nn.Linear(4, 3), u).to_peft(), u)
        True
        """
        n, shape = real_layer(linear).in_features, tuple(real("u", u).shape)
        orthonormal = check.flag("apply_GS", apply_GS)
        if len(shape) != 2 or shape[0] != n or not shape[1] or (orthonormal and shape[1] > n):
            most = f"{n} >= r" if orthonormal else "r"
            raise ValueError(f"u must have shape (in_features, r) with in_features = {n} and {most} >= 1, not {shape}")
        vectors = u.detach().to(empty(linear, 0), copy=True)
        adapter = cls.__new__(cls)  # without vectors drawn at random, and r may be odd
        super(HRA, adapter).__init__(linear)
        adapter.vectors = nn.Parameter((torch.linalg.qr(vectors)[0] if orthonormal else vectors).contiguous())
        return adapter

    def to_peft(self) -> Tensor:
        """``hra_u`` of an HRA layer of the package peft, for an HRAConfig without ``apply_GS``.

        Returns
        -------
        Tensor, shape (in_features, r)
            A copy.
        """
        return self.vectors.detach().clone()


def reflections(vectors: Tensor) -> Householder:
    """H; a vector that has become zero is the last unit vector."""
    return reflecting(Householder, vectors, scaled)
