"""Orthogonal fine-tuning: blocks of inputs are turned by rotations of their own."""

from typing import Self

import torch
from torch import Tensor, nn

from ..._objects._declaration import packed_size
from ..._rules import check
from .._dispatch.function import widened
from ..delta.delta_rule import real
from ..operators._blocks import blocks
from ..operators.cayley import Cayley
from ._adapter import Adapter, arithmetic, empty, real_layer


class OFT(Adapter):
    """Orthogonal fine-tuning (OFT) of a linear layer: its input is multiplied by orthogonal blocks.

    y = linear(R x), R block-diagonal with a Cayley transform (I + A)^{-1} (I - A) per block, exact for every A. R
    starts as the identity. The given layer is frozen: ``requires_grad`` of its parameters becomes False.

    Parameters
    ----------
    linear : torch.nn.Linear
        The layer to adapt, real.
    block_size : int
        b, a divisor of ``in_features``.

    Attributes
    ----------
    linear : torch.nn.Linear
        The given layer.
    upper : torch.nn.Parameter, shape (in_features / b, b (b - 1) / 2)
        A[i, j], i < j, row by row, for each block, as in `Cayley`; zero at the start. float32 beside a layer in half
        precision, else of the layer's dtype.

    Raises
    ------
    TypeError
        If linear is no ``torch.nn.Linear`` or complex.
    ValueError
        If block_size is less than 1 or no divisor of ``in_features``, or linear a ``torch.nn.LazyLinear`` without a
        weight yet.

    See Also
    --------
    HRA : reflections instead of blocks.
    attach : adapts all layers of a model.
    :doc:`orthogonal-weights` : adapters, with their costs.

    Notes
    -----
    A row costs 2 b in_features operations besides those of the layer, the blocks 2 b^2 in_features once per call.
    float16 and bfloat16 are computed in float32 and rounded once, before the layer.

    References
    ----------
    Qiu et al.: Controlling text-to-image diffusion by orthogonal finetuning, NeurIPS 2023.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> linear, x = torch.nn.Linear(8, 3), torch.randn(5, 8)
    >>> adapter = it.adapters.OFT(linear, block_size=4)
    >>> torch.allclose(adapter(x), linear(x))
    True
    >>> [name for name, p in adapter.named_parameters() if p.requires_grad]
    ['upper']
    """

    upper: nn.Parameter
    _trained = "upper"

    def __init__(self, linear: nn.Linear, block_size: int = 32) -> None:
        n, b = real_layer(linear).in_features, check.count("block_size", block_size, 1)
        if n % b:
            raise ValueError(f"block_size must be a divisor of in_features = {n}, not {b}")
        upper = empty(linear, n // b, b * (b - 1) // 2)
        super().__init__(linear)
        self.block_size, self.upper = b, upper
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make R the identity."""
        nn.init.zeros_(self.upper)

    def forward(self, x: Tensor) -> Tensor:
        """linear(R x) for rows x (..., in_features)."""
        return self.linear(self.rotate(x))

    def rotate(self, x: Tensor) -> Tensor:
        """R x for rows x (..., in_features), in the dtype of x."""
        own = arithmetic(x, self.upper, self.in_features)
        return turned(rotations(widened(self.upper)), x.to(own)).to(x.dtype)

    def _turned_weight(self) -> Tensor:
        return turned(rotations(widened(self.upper)).mT, widened(self.linear.weight))

    def extra_repr(self) -> str:
        return f"block_size={self.block_size}"

    # ------------------------------------------------------------ the layout of PEFT

    @classmethod
    def from_peft(
        cls, linear: nn.Linear, weight: Tensor, *, use_cayley_neumann: bool = True, eps: float | None = None
    ) -> Self:
        """The adapter of a layer with the weights of an OFT layer of the package peft.

        Parameters
        ----------
        linear : torch.nn.Linear
            The layer to adapt.
        weight : Tensor, shape (in_features / b, b (b - 1) / 2), or (1, b (b - 1) / 2) with block_share
            ``oft_R.weight`` of the layer's adapter; the size of a block is read off its shape.
        use_cayley_neumann : bool
            As in the OFTConfig. PEFT's series approximates the Cayley transform of A, its exact solver computes that of
            -A: with False the signs are turned. R is exact in either case.
        eps : float, optional
            The eps of the OFTConfig if it has ``coft=True``: the blocks are projected as in PEFT's forward.

        Raises
        ------
        TypeError
            If weight is no real tensor.
        ValueError
            If the shape of weight does not fit the layer, or eps is negative.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> weight = torch.tensor([[0.1], [0.2]])
        >>> it.adapters.OFT.from_peft(torch.nn.Linear(4, 3), weight).to_peft()
        tensor([[0.1000],
                [0.2000]])
        """
        n, shape = real_layer(linear).in_features, tuple(real("weight", weight).shape)
        check.stack("weight", shape, 2, "(blocks, b (b - 1) / 2)")
        b = packed_size("weight", shape[-1])
        if len(shape) != 2 or n % b or shape[0] not in (1, n // b):
            raise ValueError(
                f"weight must have shape (in_features / b, b (b - 1) / 2) with in_features = {n}, or one row for all "
                f"blocks, not {shape}"
            )
        sign = 1 if check.flag("use_cayley_neumann", use_cayley_neumann) else -1
        bound = None if eps is None else check.tolerance(eps, "eps") / shape[0] ** 0.5
        adapter = cls(linear, b)
        upper = weight.detach().to(adapter.upper)
        if bound is not None:
            norm = 2**0.5 * upper.norm(dim=-1, keepdim=True)  # of the skew matrix
            upper = torch.where(norm <= bound, upper, upper * (bound / norm))
        with torch.no_grad():
            adapter.upper.copy_(sign * upper)
        return adapter

    def to_peft(self, *, use_cayley_neumann: bool = True) -> Tensor:
        """``oft_R.weight`` of an OFT layer of the package peft, for an OFTConfig with the same ``use_cayley_neumann``.

        Returns
        -------
        Tensor, shape (in_features / b, b (b - 1) / 2)
            A copy.
        """
        upper = self.upper.detach().clone()
        return upper if check.flag("use_cayley_neumann", use_cayley_neumann) else -upper


def rotations(upper: Tensor) -> Tensor:
    """The blocks of R, (blocks, b, b)."""
    return Cayley(upper).matrix()


def turned(rotations: Tensor, x: Tensor) -> Tensor:
    """Rows times a block-diagonal matrix."""
    return blocks(rotations, x.unflatten(-1, rotations.shape[::2])).flatten(-2)
