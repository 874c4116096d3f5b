"""What the adapters share: the frozen layer, the precision of the arithmetic, merging."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..._rules import check
from .._contiguous import Contiguous
from .._dispatch.function import HALF, dtype_name, widened


class Adapter(Contiguous):
    """y = linear(Q x) for an orthogonal Q, whose parameters alone are trained."""

    linear: nn.Linear

    if TYPE_CHECKING:

        def __call__(self, x: Tensor) -> Tensor: ...

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)

    def _empty(self, *shape: int) -> nn.Parameter:
        """A new parameter: float32 beside a layer in half precision, else of its dtype."""
        weight = self.linear.weight
        return nn.Parameter(torch.empty(shape, dtype=widened(weight).dtype, device=weight.device))

    @property
    def in_features(self) -> int:
        """That of the layer."""
        return self.linear.in_features

    @property
    def out_features(self) -> int:
        """That of the layer."""
        return self.linear.out_features

    @property
    def weight(self) -> Tensor:
        """W Q for the weight W of the layer, computed in every access; differentiable."""
        return self._turned_weight().to(self.linear.weight.dtype)

    @property
    def bias(self) -> Tensor | None:
        """That of the layer."""
        return self.linear.bias

    def _turned_weight(self) -> Tensor:
        """W Q for the weight W of the layer, in the precision of the arithmetic."""
        raise NotImplementedError(f"{type(self).__name__} must define _turned_weight()")

    def merge(self) -> nn.Linear:
        """A new ``torch.nn.Linear`` that computes the same function.

        Returns
        -------
        torch.nn.Linear
            With the weight W Q, computed in at least float32 and rounded to the dtype of the given layer, and a copy of
            its bias. The adapter and its layer stay as they are.

        Raises
        ------
        ValueError
            If the layer has a forward or hooks of its own, which a new layer would not have.
        """
        linear = self.linear
        if not is_product(linear):
            raise ValueError(
                "linear has a forward or hooks of its own, which a merged layer would not have: remove them"
            )
        weight, bias = linear.weight, linear.bias
        merged: nn.Linear = nn.utils.skip_init(
            nn.Linear,
            linear.in_features,
            linear.out_features,
            bias=bias is not None,
            device=weight.device,  # type: ignore[arg-type]
            dtype=weight.dtype,
        )
        with torch.no_grad():
            merged.weight.copy_(self.weight)
            if bias is not None:
                merged.bias.copy_(bias)
        return merged.train(self.training)


def real_layer(linear: object) -> nn.Linear:
    """The layer to adapt, after checking its kind."""
    if not isinstance(linear, nn.Linear):
        check.kind("linear", "a torch.nn.Linear", linear)
    if is_lazy(linear.weight):
        raise ValueError("linear has no weight yet: a torch.nn.LazyLinear gets its sizes in its first call")
    if linear.weight.is_complex():
        raise TypeError(f"the weight of linear must be real, not {dtype_name(linear.weight.dtype)}")
    return linear


def is_product(linear: nn.Linear) -> bool:
    """Whether a call of the layer is the product with its weight, plus its bias: no other forward, no hooks of its
    own."""
    if type(linear).forward is not nn.Linear.forward or "forward" in linear.__dict__:
        return False
    hooks = linear._forward_hooks, linear._forward_pre_hooks, linear._backward_hooks, linear._backward_pre_hooks
    return not any(hooks)


def arithmetic(x: object, parameter: Tensor, features: int) -> torch.dtype:
    """The precision of the arithmetic, that of the parameter, after checking the inputs."""
    if not isinstance(x, Tensor):
        check.kind("x", "a torch.Tensor", x)
    own = widened(parameter).dtype
    if x.dtype not in HALF:
        check.real("x", dtype_name(x.dtype))
        if x.dtype is not own:
            check.same_precision("x", dtype_name(x.dtype), "the adapter", dtype_name(own))
    check.last("x", tuple(x.shape), features, "(..., in_features)")
    return own
