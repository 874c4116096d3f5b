"""One layer in the place of another: what the one that leaves has besides its function, and places where nobody looks.

A call of a model reads its registered submodules. A compiled call, a wrapper that counts parameters, and an attribute
that holds a layer beside the registered one read what they were given, so a layer put in that place is never called.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from ..._rules import check
from .._dispatch.function import HALF, REAL_OF, dtype_name
from .._divided import is_divided

#: Where torch keeps the hooks of modules and of tensors: looked up, so that a kind which a release adds is known.
_HOOKS = tuple(name for name, value in vars(nn.Module()).items() if "hooks" in name and isinstance(value, Mapping))
_TENSOR_HOOKS = tuple(name for name in dir(Tensor) if name.startswith("_") and name.endswith("_hooks"))
#: Wrappers that keep the parameters which they were given.
_KEEPERS = {"DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDPModule"}
#: How deep, and among how many values of a level, layers are looked for in an attribute.
_DEPTH, _MOST = 5, 100_000


def additions(module: nn.Module, parameters: Collection[str], modules: Collection[str] = ()) -> str | None:
    """What a module has besides parameters and submodules of these names; None if it is nothing but those.

    Attributes that are neither tensors nor modules do not count.
    """
    for name in _HOOKS:
        if getattr(module, name, None):
            return name.strip("_").replace("_", " ")
    for name, what in (("forward", "a forward of its own"), ("_compiled_call_impl", "a compiled call")):
        if vars(module).get(name) is not None:
            return what
    for owner, expected, what in (
        (module._parameters, parameters, "parameter"),
        (module._buffers, (), "buffer"),
        (module._modules, modules, "submodule"),
    ):
        more = [name for name, value in owner.items() if value is not None and name not in expected]
        if more:
            return f"the {what} {more[0]!r}"
        if any(owner.get(name) is None for name in expected):
            return f"what computes {next(name for name in expected if owner.get(name) is None)!r}"
    for name, p in module._parameters.items():
        if any(getattr(p, kind, None) for kind in _TENSOR_HOOKS):
            return f"gradient hooks of {name!r}"
    return None


def carry(module: nn.Module, plain: nn.Module, found: nn.Module) -> str | None:
    """Gives a layer the attributes that were set on another alone, which a plain one of its class has not.

    Returns the name of one that means something else there, if there is one.
    """
    own = {name: value for name, value in vars(module).items() if name not in vars(plain)}
    for name in own:
        if name in vars(found) or hasattr(type(found), name):
            return name
    vars(found).update(own)
    return None


def unseen(model: nn.Module, leaving: Mapping[Any, str]) -> dict[Any, str]:
    """Why a call of the model would still reach layers, or parameters, that leave it; values are their names."""
    found: dict[Any, str] = {}
    for path, module in model.named_modules():
        kinds = {kind.__name__ for kind in type(module).__mro__ if kind.__module__.startswith("torch.")}
        if "OptimizedModule" in kinds and (layer := module._modules.get("_orig_mod")) in leaving:
            why = "is compiled, and torch.compile calls the layer that it was given: compile afterwards"
            found.setdefault(layer, why)
        for keeper in kinds & _KEEPERS:
            why = f"is inside {check.article(keeper)}, which keeps the parameters that it was given: wrap afterwards"
            for layer in module.modules():
                if layer in leaving:
                    found.setdefault(layer, why)
        for name, value in vars(module).items() if module not in leaving else ():
            if name in ("_modules", "_parameters") or name in _HOOKS:
                continue
            for held in _held(value, leaving):
                where = f"{path}.{name}" if path else name
                why = f"is also held by the attribute {where!r}, where it would stay"
                found.setdefault(held, why)
    return found


def _held(value: Any, leaving: Mapping[Any, str]) -> list[Any]:
    """Those that are an attribute's value, or that containers, functions and objects in it hold."""
    found, level, seen = [], [value], set()
    for _ in range(_DEPTH):
        parts: list[Any] = []
        for each in level:
            if isinstance(each, nn.Module | Tensor):
                found += [each] if each in leaving else []
            elif id(each) not in seen:
                seen.add(id(each))
                parts += _parts(each)
        level = parts[:_MOST]
    return found


def _parts(value: Any) -> Iterable[Any]:
    """What a container, a function or an object of a class of one's own holds."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    if isinstance(value, MethodType):
        return value.__self__, value.__func__
    if isinstance(value, partial):
        return value.func, *value.args, *value.keywords.values()
    if isinstance(value, FunctionType):
        return [*map(content, value.__closure__ or ()), value.__defaults__, value.__kwdefaults__]
    if isinstance(value, type | ModuleType) or type(value).__module__.partition(".")[0] in ("builtins", "torch"):
        return ()
    return list(getattr(value, "__dict__", {}).values())


def content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def replace(model: nn.Module, made: Mapping[Any, Any]) -> None:
    """Puts other modules in all places of some."""
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):
            if child in made:
                setattr(parent, name, made[child])


def weights_of_others(model: nn.Module, leaving: Collection[Any]) -> dict[Tensor, str]:
    """The parameters of the modules that stay, with their names in the model."""
    every = [(path, module) for path, module in model.named_modules() if module not in leaving]
    return {p: f"{path}.{name}" for path, own in every for name, p in own._parameters.items() if p is not None}


def check_module(argument: str, module: object) -> None:
    """Refuse what is no module."""
    if not isinstance(module, nn.Module):
        check.kind(argument, "a torch.nn.Module", module)


def check_weight(argument: str, weight: Any) -> None:
    """A weight that is taken over: dense, real, of a precision that the package computes in or widens, and whole."""
    if not isinstance(weight, Tensor):
        check.kind(argument, "a torch.Tensor", weight)
    if weight.layout is not torch.strided:
        check.strided(argument, weight.layout)
    if weight.dtype not in HALF and REAL_OF.get(weight.dtype) is not weight.dtype:
        check.stored(argument, dtype_name(weight.dtype))
    if is_divided(weight):
        raise TypeError(f"{argument} must be whole, not a sharded {type(weight).__name__}: shard the model afterwards")
