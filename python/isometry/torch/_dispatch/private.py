"""torch's private names, looked up once, when the package is imported.

A release of torch may drop any of them. A mode that can then not be asked counts as being on, so that the formula
computes, slower and right; where a part of the passage through torch.func is missing, the formula computes there.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch.autograd import forward_ad, function


def _name(path: str, instead: Any = None) -> Any:
    """What torch has under this path, else what serves in its place."""
    found: Any = torch
    for part in path.split("."):
        found = getattr(found, part, None)
    return instead if found is None else found


def _on(*_: object) -> bool:
    return True


# ---------------------------------------------------------------- modes

transforms_active = _name("_C._are_functorch_transforms_active", _on)
global_forward_hooks = _name("nn.modules.module._global_forward_hooks", (_on,))
global_forward_pre_hooks = _name("nn.modules.module._global_forward_pre_hooks", (_on,))
has_global_hooks = _name("nn.modules.module._has_any_global_hook", _on)
dispatch_modes = _name("_C._len_torch_dispatch_stack", _on)
tracing_state = _name("_C._get_tracing_state", _on)
#: Whether a tensor is a batch of torch.autograd.grad(is_grads_batched=True), which is no transform of torch.func.
is_batch_of_gradients = _name("_C._functorch.is_legacy_batchedtensor", _on)
#: Has `_is_exporting_flag`: inside `torch.compile` of torch 2.11, `torch.compiler.is_exporting()` is always true.
exporting = (
    torch.compiler if hasattr(torch.compiler, "_is_exporting_flag") else SimpleNamespace(_is_exporting_flag=True)
)
#: Has `_current_level`, at least 0 in forward mode.
forward_mode = forward_ad if hasattr(forward_ad, "_current_level") else SimpleNamespace(_current_level=0)

# ---------------------------------------------------------------- levels of torch.func

_LEVELS = """
    get_interpreter_stack peek_interpreter_stack pop_dynamic_layer_stack push_dynamic_layer_stack TransformType
    is_functorch_wrapped_tensor get_unwrapped unwrap_if_dead CGradInterpreterPtr CVmapInterpreterPtr
    get_single_level_autograd_function_allowed set_single_level_autograd_function_allowed
    _wrap_for_grad _unwrap_for_grad _unwrap_batched _add_batch_dim
"""
functorch = SimpleNamespace(**{name: _name(f"_C._functorch.{name}") for name in _LEVELS.split()})
is_forward_mode_enabled = _name("_C._is_fwd_grad_enabled")
set_forward_mode_enabled = _name("_C._set_fwd_grad_enabled")
SingleLevelFunction: Any = getattr(function, "_SingleLevelFunction", function.Function)
#: Whether kernels can be reached through the levels.
REACHED = (
    _on not in (transforms_active, dispatch_modes, tracing_state, is_batch_of_gradients)
    and None not in (*vars(functorch).values(), is_forward_mode_enabled, set_forward_mode_enabled)
    and SingleLevelFunction is not function.Function
)
#: The kinds of levels that kernels pass.
PASSED = (functorch.TransformType.Grad, functorch.TransformType.Vmap) if REACHED else ()

# ---------------------------------------------------------------- torch.compile

_NAMES = ("set_code_exec_strategy", "_FrameExecStrategy", "_FrameAction")
_arrange, _strategy, _action = (_name(f"_C._dynamo.eval_frame.{name}") for name in _NAMES)
_F = TypeVar("_F", bound=Callable[..., Any])


def uncompiled(function: _F) -> _F:
    """The function itself, which torch.compile neither traces nor compiles where it is called outside a graph."""
    if None not in (_arrange, _strategy, _action):
        _arrange(function.__code__, _strategy(_action.SKIP, _action.SKIP))
    return function
