"""How modules store tensors: contiguous, however they came, and complex ones as pairs (real, imaginary) in a last axis,
which every optimiser and every conversion of a module handles.

What flattens or stores parameters needs contiguous ones: `parameters_to_vector`, LBFGS, safetensors, buckets of
gradients. Other strides come with transposed arguments, with a state that is assigned, with `memory_format`.
"""

from typing import Any, Self

import torch
from torch import Tensor, nn

from ._leaf import Leaf


class Contiguous(Leaf):
    """Keeps its own tensors contiguous; those of its submodules are theirs."""

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        arrange(self)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        arrange_state(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def arrange(module: nn.Module) -> None:
    """Make the tensors of a module contiguous; a parameter stays the same object."""
    for p in module._parameters.values():
        if p is not None and not p.is_contiguous():
            p.data = p.data.contiguous()
    for name, t in module._buffers.items():
        if t is not None and not t.is_contiguous():
            module._buffers[name] = t.contiguous()


def arrange_state(module: nn.Module, state: dict[str, Any], prefix: str) -> None:
    """Make those of a state contiguous that a module loads, since it may keep them."""
    for name in (*module._parameters, *module._buffers):
        t = state.get(prefix + name)
        if isinstance(t, Tensor) and not t.is_contiguous():
            state[prefix + name] = t.detach().contiguous()


def paired(t: Tensor) -> Tensor:
    """The form in which a tensor is stored."""
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def unpaired(stored: Tensor) -> Tensor:
    """The complex tensor that pairs represent."""
    # An empty tensor counts as contiguous whatever its strides. NumPy's are zero, which cannot be viewed as pairs.
    pairs = stored.contiguous() if stored.numel() else stored.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(pairs)
