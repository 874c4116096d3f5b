"""Freezing, and back. Each module notes which of its own parameters were trained, so that copies and parts know too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from torch import nn

#: The attribute of a module: the names of its own parameters, and whether they were trained before an adapter came.
NOTE = "_trained_before_adapters"


def freeze(modules: Sequence[nn.Module]) -> None:
    """Freeze the modules' own parameters. What a module has noted of a parameter that is frozen stays."""
    for module in modules:
        noted = vars(module).setdefault(NOTE, {})
        for name, p in module._parameters.items():
            if p is not None:  # noted before any is frozen, since several modules may share one
                noted[name] = p.requires_grad or noted.get(name, False)
    for module in modules:
        for p in module._parameters.values():
            if p is not None:
                p.requires_grad_(False)


def restore(modules: Iterable[nn.Module]) -> None:
    """Train the parameters that were trained before, and freeze the others that have been noted."""
    trained: dict[nn.Parameter, bool] = {}
    for module in modules:
        for name, before in vars(module).pop(NOTE, {}).items():
            p = module._parameters.get(name)
            if p is not None:  # shared ones are trained if one of the modules knows that they were
                trained[p] = before or trained.get(p, False)
    for shared, before in trained.items():
        shared.requires_grad_(before)


def was_trained(module: nn.Module, name: str) -> bool:
    """Whether a module's own parameter was trained before an adapter came."""
    p = module._parameters[name]
    trained: bool = vars(module).get(NOTE, {}).get(name, p is not None and p.requires_grad)
    return trained


@contextmanager
def all_or_nothing(modules: Sequence[nn.Module]) -> Iterator[None]:
    """A context that leaves the modules' own parameters and notes as they were if it raises."""
    notes = [dict(vars(module)[NOTE]) if NOTE in vars(module) else None for module in modules]
    trained = [(p, p.requires_grad) for module in modules for p in module._parameters.values() if p is not None]
    try:
        yield
    except BaseException:
        for module, note in zip(modules, notes, strict=True):
            vars(module).pop(NOTE, None)
            if note is not None:
                vars(module)[NOTE] = note
        for p, before in trained:
            p.requires_grad_(before)
        raise
