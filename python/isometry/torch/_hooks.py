"""The weights that a call of a module would use, for whoever reads them outside a call.

``torch.nn.utils.prune``, the older ``weight_norm`` and ``spectral_norm`` and hooks of a user's own keep a weight as a
plain attribute, or change it in place, in a forward pre-hook: between calls it is that of the last one.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.fx import Proxy
from torch.nn.utils import parametrize

from .._rules import check


def settle(module: nn.Module, reader: str) -> None:
    """Run the forward pre-hooks of the module, without an input, so that its weights are those of the next call.

    A hook that fails without an input is passed over if all weights are parameters and buffers.

    Raises
    ------
    RuntimeError
        Naming `reader` and the hook: a hook fails without an input, and weights are computed; or the parameters are
        sharded.
    TypeError
        torch.fx traces, so that parameters have no values.
    """
    kind = type(module).__name__
    for name in module._parameters:
        if isinstance(proxy := getattr(module, name), Proxy):
            check.kind(f"{name} of {kind}", "a torch.Tensor", proxy)
    if any(type(p) is not nn.Parameter and hasattr(p, "device_mesh") for p in module._parameters.values()):
        _gathered(module, kind, reader)  # divided with a module around it, which has the hooks
    if not module._forward_pre_hooks:
        return
    for key, hook in tuple(module._forward_pre_hooks.items()):
        if (getattr(hook, "__module__", None) or "").startswith("torch.distributed"):
            _gathered(module, kind, reader)
            continue
        try:
            if key in module._forward_pre_hooks_with_kwargs:
                hook(module, (), {})
            else:
                hook(module, ())
        except Exception as error:
            if names := computed(module):
                raise RuntimeError(
                    f"{reader} needs the weights of a call, but {hook_name(hook)}, a forward pre-hook of {kind}, "
                    f"cannot compute {', '.join(names)} without an input: {error}"
                ) from error


def computed(module: nn.Module) -> list[str]:
    """The names of the tensors of a module that are neither parameters nor buffers: a hook computes them."""
    return [name for name, value in vars(module).items() if isinstance(value, Tensor)]


def state_of(module: nn.Module) -> list[Tensor]:
    """The parameters and buffers of a module itself."""
    return [t for owner in (module._parameters, module._buffers) for t in owner.values() if t is not None]


def need_values(module: nn.Module, reader: str) -> None:
    """RuntimeError if a parameter or buffer is on the meta device, where `reader` would give a shape alone."""
    if any([t.is_meta for t in (*module.parameters(), *module.buffers())]):  # noqa: C419  torch.compile
        raise RuntimeError(
            f"{reader} needs values, but parameters are on the meta device, where accelerate keeps them between calls: "
            "call the module, or move it to a device with its values first"
        )


def sources(module: nn.Module, name: str, reader: str) -> Iterator[nn.Parameter]:
    """The parameters of which a weight is made: itself, those of its parametrization, or those whose names continue its
    own, as torch's hooks have them (``weight_orig``, ``weight_g``).

    Raises
    ------
    RuntimeError
        Naming `reader` and the weight, if there are none.
    """
    own = made_of(module, name)
    if not own:
        raise RuntimeError(f"{reader} cannot tell of which parameters a hook computes {name}: no name continues that")
    yield from own


def made_of(module: nn.Module, name: str) -> list[nn.Parameter]:
    """`sources`, none where they are not known."""
    if name in module._parameters:
        own = [module._parameters[name]]
    elif parametrize.is_parametrized(module, name):
        own = list(module.parametrizations[name].parameters())  # type: ignore[index, union-attr]
    else:
        other = name + "_reverse"
        own = [p for key, p in module._parameters.items() if key.startswith(name + "_") and not key.startswith(other)]
    return [p for p in own if p is not None]


def hook_name(hook: Callable[..., Any]) -> str:
    """What a message calls a hook: the name of the function, or of the class."""
    while isinstance(hook, partial):
        hook = hook.func
    return getattr(hook, "__qualname__", None) or type(hook).__name__


def _gathered(module: nn.Module, kind: str, reader: str) -> None:
    """Refuse sharded parameters: only a call gathers them, and only its backward pass divides their gradients."""
    if any(type(p) is not nn.Parameter for p in module.parameters()):
        raise RuntimeError(
            f"{reader} needs whole parameters, but fully_shard has divided those of {kind}: it gathers them in calls "
            "of the module, and of methods that torch.distributed.fsdp.register_fsdp_forward_method names"
        )
