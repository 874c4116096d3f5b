"""The mode of computation of a call, decided once from the modes of torch and the call's tensors.

===========  ================================================================================================
KERNEL       Eager tensors on the CPU, no gradient to record: the kernel alone; nothing is saved.
RECORDED     The same with gradients to record: the kernel within a `torch.autograd.Function`.
TRANSFORMED  Such tensors inside `grad`, `vjp` and `vmap` of torch.func: the kernel within a Function that passes
             through their levels.
GRAPH        A graph of `torch.compile` or `torch.export`: a custom operator around the kernel.
TRACED       Such a graph of tensors on another device: torch's operations, a loop over time as one custom operator.
DEVICE       Eager tensors on another device, for which there are no kernels: torch's operations, by the formula or,
             where fewer do, by forward and backward passes that are written out (`device`).
FORMULA      Whatever else observes or replaces torch's operations (forward mode, tracing, fake tensors, subclasses):
             the formula, to whose operations every mode of torch applies.
===========  ================================================================================================
"""

from collections.abc import Sequence
from enum import Enum, auto

import torch
from torch import Tensor, is_grad_enabled, is_inference_mode_enabled
from torch.compiler import is_compiling
from torch.nn import Parameter

from .private import (
    PASSED,
    REACHED,
    dispatch_modes,
    exporting,
    forward_mode,
    functorch,
    is_batch_of_gradients,
    tracing_state,
    transforms_active,
)


class Mode(Enum):
    """How a call is computed."""

    KERNEL = auto()
    RECORDED = auto()
    GRAPH = auto()
    FORMULA = auto()
    TRANSFORMED = auto()
    DEVICE = auto()
    TRACED = auto()


KERNEL, RECORDED, GRAPH, FORMULA, TRANSFORMED, DEVICE, TRACED = Mode
#: The modes that compute in torch's operations.
WITHOUT_KERNELS = (FORMULA, DEVICE, TRACED)
_OBSERVED = (FORMULA, TRANSFORMED)


def mode(*tensors: Tensor | None) -> Mode:
    """The mode of a call on these tensors."""
    if is_compiling():
        # The operators of a graph support neither tangents nor vmap. The compiler guards on the values read here, so a
        # graph made outside these modes is not used inside them.
        inside = transforms_active() or forward_mode._current_level >= 0
        here = all([t is None or t.device.type == "cpu" for t in tensors])  # noqa: C419  torch.compile
        if inside or (exporting._is_exporting_flag and not here):  # what is exported from a device needs torch alone
            return FORMULA
        return GRAPH if here else TRACED
    if transforms_active() or forward_mode._current_level >= 0 or dispatch_modes() or tracing_state() is not None:
        if _reached(tensors):
            return TRANSFORMED
        replaced = transforms_active() or forward_mode._current_level >= 0 or tracing_state() is not None
        return FORMULA if replaced else _elsewhere(tensors)
    how = KERNEL
    for t in tensors:
        if t is not None:
            kind = type(t)
            # A subclass (fake, distributed, nested, ...) has no memory that a kernel could read; a Parameter has.
            if not ((kind is Tensor or kind is Parameter) and t.is_cpu):
                return _elsewhere(tensors)
            if t.requires_grad:
                how = RECORDED
    # Inside inference_mode, enable_grad records nothing.
    return how if how is KERNEL or (is_grad_enabled() and not is_inference_mode_enabled()) else KERNEL


def symbolic() -> bool:
    """Whether sizes may be symbols, which have no hash."""
    return is_compiling() or dispatch_modes() > 0


def visible(*tensors: Tensor | None) -> bool:
    """Whether the values of these tensors can be read now; on a device that would force a synchronisation."""
    if is_compiling() or transforms_active() or dispatch_modes() or tracing_state() is not None:
        return False
    return all([t is None or (t.is_cpu and (type(t) is Tensor or type(t) is Parameter)) for t in tensors])  # noqa: C419


def wanted(tensors: Sequence[Tensor | None]) -> tuple[bool, ...]:
    """The tensors whose gradients a call records."""
    if not is_grad_enabled():
        return (False,) * len(tensors)
    return tuple([t is not None and t.requires_grad for t in tensors])


def _elsewhere(tensors: Sequence[Tensor | None]) -> Mode:
    """The mode of tensors on another device, or of subclasses, with or without a mode that observes operations."""
    given = [t for t in tensors if t is not None]
    plain = all(type(t) is Tensor or type(t) is Parameter for t in given)
    return DEVICE if plain and not all(t.is_cpu for t in given) else FORMULA


def _reached(tensors: Sequence[Tensor | None]) -> bool:
    """Whether all modes around a call are `grad`, `vjp` and `vmap` of torch.func, in which kernels can compute."""
    if not REACHED or not transforms_active() or forward_mode._current_level >= 0 or dispatch_modes():
        return False
    if tracing_state() is not None or not all(level.key() in PASSED for level in functorch.get_interpreter_stack()):
        return False
    for t in tensors:
        if t is not None:
            while functorch.is_functorch_wrapped_tensor(t):
                t = functorch.get_unwrapped(t)
            if not ((type(t) is Tensor or type(t) is Parameter) and t.is_cpu):
                return False
    return True


def by_kernels(*tensors: Tensor | None) -> bool:
    """Whether kernels compute a call, alone or inside a Function."""
    return mode(*tensors) in (KERNEL, RECORDED, TRANSFORMED)


def differentiated(*cts: Tensor | None) -> bool:
    """Whether a backward pass is itself differentiated or observed, and must therefore consist of torch operations."""
    if is_grad_enabled() or mode(*cts) in _OBSERVED:
        return True
    for ct in cts:  # noqa: SIM110  quicker than any()
        if ct is not None and is_batch_of_gradients(ct):
            return True
    return False


def autocast(device: torch.device) -> bool:
    """Whether autocast is on for this kind of device; False for the meta device, for which torch raises."""
    return device.type != "meta" and torch.is_autocast_enabled(device.type)
