"""What the adapters share: the frozen layer, the precision of the arithmetic, merging."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..._rules import check
from .._dispatch.function import HALF, REAL_OF, dtype_name, widened
from .._hooks import settle
from .._stored import Contiguous
from ..nn._replacing import additions, carry, check_weight
from ..operators._operator import dense
from ._frozen import NOTE, freeze, was_trained


class Adapter(Contiguous):
    """y = linear(Q x) for an orthogonal Q, whose parameters alone are trained."""

    linear: nn.Linear
    _trained: str
    """The name of its parameter."""

    if TYPE_CHECKING:

        def __call__(self, x: Tensor) -> Tensor: ...

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear
        freeze(list(linear.modules()))

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
        """W Q for the weight W of the layer, computed in every access; differentiable.

        Forward pre-hooks of the layer and of the adapter are run first, without an input, since
        ``torch.nn.utils.prune`` and others compute weights in them; RuntimeError for one that cannot, and for weights
        that ``fully_shard`` has divided; TypeError where a quantiser has replaced the layer.
        """
        settle(self.linear, "weight")
        settle(self, "weight")
        linear = self._own_layer("weight")
        return self._turned_weight().to(linear.weight.dtype)

    @property
    def _own_modules(self) -> dict[str, nn.Module]:
        """Itself and what was added to it, as by ``torch.nn.utils.parametrize``, by name; not the layer."""
        return {name: module for name, module in self.named_modules() if name.partition(".")[0] != "linear"}

    @property
    def bias(self) -> Tensor | None:
        """That of the layer; hooks as for `weight`."""
        settle(self.linear, "bias")
        return self._own_layer("bias").bias

    def _own_layer(self, reader: str) -> nn.Linear:
        """The layer; TypeError naming `reader` where a quantiser has put another in its place."""
        linear = self.linear
        if isinstance(linear, nn.Linear) and (linear.weight.dtype in HALF or linear.weight.dtype in REAL_OF):
            return linear
        raise TypeError(
            f"{reader} needs the torch.nn.Linear that was adapted, but it has been quantised or replaced: linear is "
            f"now {check.article(kind_name(linear))}. Merge the adapter before"
        )

    def _turned_weight(self) -> Tensor:
        """W Q for the weight W of the layer, in the precision of the arithmetic."""
        raise NotImplementedError(f"{type(self).__name__} must define _turned_weight()")

    def merge(self) -> nn.Linear:
        """A new ``torch.nn.Linear`` that computes the same function.

        Returns
        -------
        torch.nn.Linear
            With the weight W Q, computed in at least float32 and rounded to the dtype of the given layer, and a copy of
            its bias; trained as the layer was before the adapter, with the attributes that were set on it. The adapter
            and its layer stay as they are.

        Raises
        ------
        ValueError
            If the layer or the adapter has hooks, tensors or submodules of its own, or the layer a forward, which a new
            layer would not have.
        TypeError
            If a quantiser, or something else, has put another layer in the place of the given one.
        """
        linear, why = self._own_layer("merge"), self._kept_apart()
        if why is not None:
            raise ValueError(why)
        weight, bias = linear.weight, linear.bias
        merged: nn.Linear = nn.utils.skip_init(
            nn.Linear,
            linear.in_features,
            linear.out_features,
            bias=bias is not None,
            device=weight.device,  # type: ignore[arg-type]
            dtype=weight.dtype,
        )
        if (name := carry(linear, merged, merged)) is not None:
            raise ValueError(f"linear has an attribute {name!r}, which means another thing in a merged layer")
        vars(merged).pop(NOTE, None)
        with torch.no_grad():
            merged.weight.copy_(self.weight)
            if bias is not None:
                merged.bias.copy_(bias)
        for name, p in merged.named_parameters():
            p.requires_grad_(was_trained(linear, name))
            vars(p).update(vars(linear.get_parameter(name)))
            vars(p).pop(NOTE, None)
        return merged.train(self.training)

    def _kept_apart(self) -> str | None:
        """Why no plain layer can take the place of the adapter and its layer, if so."""
        linear, what = self.linear, self._additions()
        if what is not None:
            return f"the adapter has hooks or other additions, which a merged layer would not have: remove {what}"
        if type(linear).forward is not nn.Linear.forward:
            what = "the forward of its class"
        else:
            what = additions(linear, ["weight"] if linear.bias is None else ["weight", "bias"])
        if what is None:
            return None
        return (
            "linear has a forward or hooks of its own, or other additions, which a merged layer would not have: remove "
            f"{what}"
        )

    def _additions(self) -> str | None:
        """What was added to the adapter alone."""
        return additions(self, [self._trained], ["linear"])


def real_layer(linear: object) -> nn.Linear:
    """The layer to adapt, after checking its kind."""
    if not isinstance(linear, nn.Linear):
        raise TypeError(f"linear must be a torch.nn.Linear, not {kind_name(linear)}")
    if is_lazy(linear.weight):
        raise ValueError("linear has no weight yet: a torch.nn.LazyLinear gets its sizes in its first call")
    check_weight("the weight of linear", linear.weight)
    if linear.bias is not None:
        check_weight("the bias of linear", linear.bias)
    return linear


def kind_name(value: object) -> str:
    """The name of its class, with the module's for another ``Linear`` than torch.nn's, as of quantised layers."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__name__}" if kind.__name__ == "Linear" else kind.__name__


def empty(linear: nn.Linear, *shape: int) -> nn.Parameter:
    """A new parameter: float32 beside a layer in half precision, else of its dtype."""
    weight = linear.weight
    dtype = torch.promote_types(weight.dtype, torch.float32)
    return nn.Parameter(torch.empty(shape, dtype=dtype, device=weight.device))


def is_product(linear: nn.Linear) -> bool:
    """Whether a call of the layer is the product with its weight, plus its bias: no other forward, no hooks of its
    own."""
    if type(linear).forward is not nn.Linear.forward or "forward" in linear.__dict__:
        return False
    hooks = linear._forward_hooks, linear._forward_pre_hooks, linear._backward_hooks, linear._backward_pre_hooks
    return not any(hooks)


def arithmetic(x: Tensor, parameter: Tensor, features: int) -> torch.dtype:
    """The precision of the arithmetic, that of the parameter, after checking the inputs."""
    own = widened(parameter).dtype
    if dense("x", x).dtype not in HALF:
        check.real("x", dtype_name(x.dtype))
        if x.dtype is not own:
            check.same_precision("x", dtype_name(x.dtype), "the adapter", dtype_name(own))
    check.last("x", tuple(x.shape), features, "(..., in_features)")
    return own
