"""Freezing, and back.

Each module notes which of its own parameters were trained, so that copies and parts know too; so does each parameter,
which may come under another name or to another module.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn

from .._hooks import made_of

#: The attribute of a module, with the names of its own parameters, and of a parameter: whether they were trained before
#: an adapter came.
NOTE = "_trained_before_adapters"


def freeze(modules: Sequence[nn.Module]) -> None:
    """Freeze the modules' own parameters. One that an adapter has frozen before is noted as it was then."""
    trained = {p: p.requires_grad for _, _, p in _own(modules)} | _noted(modules)
    for module, name, p in _own(modules):
        vars(module).setdefault(NOTE, {})[name] = vars(p)[NOTE] = trained[p]
        p.requires_grad_(False)


def restore(modules: Sequence[nn.Module]) -> None:
    """Train the parameters that were trained before, and freeze the others that have been noted."""
    for p, trained in _noted(modules).items():
        p.requires_grad_(trained)
        vars(p).pop(NOTE, None)
    for module in modules:
        vars(module).pop(NOTE, None)


def _own(modules: Sequence[nn.Module]) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
    for module in modules:
        for name, p in module._parameters.items():
            if p is not None:
                yield module, name, p


def _noted(modules: Sequence[nn.Module]) -> dict[nn.Parameter, bool]:
    """What is noted of the parameters, first by themselves; else a shared one was trained if one of its modules knows
    that it was.
    """
    trained: dict[nn.Parameter, bool] = {}
    for module in modules:
        for name, before in vars(module).get(NOTE, {}).items():
            for p in made_of(module, name):
                trained[p] = before or trained.get(p, False)
    return trained | {p: vars(p)[NOTE] for _, _, p in _own(modules) if NOTE in vars(p)}


def was_trained(module: nn.Module, name: str) -> bool:
    """Whether a module's own parameter was trained before an adapter came."""
    p = module._parameters[name]
    assert p is not None
    return vars(p).get(NOTE, vars(module).get(NOTE, {}).get(name, p.requires_grad))


@contextmanager
def all_or_nothing(modules: Sequence[nn.Module]) -> Iterator[None]:
    """A context that leaves the modules' own parameters and notes as they were if it raises."""
    notes = [dict(vars(module)[NOTE]) if NOTE in vars(module) else None for module in modules]
    trained = [(p, p.requires_grad, vars(p).get(NOTE)) for _, _, p in _own(modules)]
    try:
        yield
    except BaseException:
        for module, note in zip(modules, notes, strict=True):
            vars(module).pop(NOTE, None)
            if note is not None:
                vars(module)[NOTE] = note
        for p, before, noted in trained:
            p.requires_grad_(before)
            vars(p).pop(NOTE, None)
            if noted is not None:
                vars(p)[NOTE] = noted
        raise
