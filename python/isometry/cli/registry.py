"""Tasks and models by name: those of papers.toml, and the user's own as package.module:Class."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Never

from isometry._rules import check
from isometry.cli.errors import UsageError

OWN = "package.module:Class"
FACTS = {"class", "requires", "source", "sizes", "files"}  # of a table of papers.toml, besides settings and keywords
REQUIRED = inspect.Parameter.empty  # the default of a keyword that has none
# keywords of a layer that the command itself sets
DECIDED = {"input_size", "hidden_size", "proj_size", "batch_first", "last_only", "device", "dtype"}
TAKEN = ("length", "batch", "seed", "data")  # settings that the constructor of a task may ask for


@cache
def papers() -> dict[str, Any]:
    """The tables of papers.toml."""
    return tomllib.loads((resources.files("isometry.cli") / "papers.toml").read_text(encoding="utf-8"))


def names(kind: str) -> tuple[str, ...]:
    """The names of all tasks, or of all models."""
    return tuple(papers()[kind])


@dataclass(frozen=True)
class Entry:
    """A "task" or "model" and its part of papers.toml, which is empty for the user's own classes."""

    kind: str
    name: str

    @property
    def table(self) -> dict[str, Any]:
        return papers()[self.kind].get(self.name, {})

    @property
    def requires(self) -> tuple[str, ...]:
        """Optional packages it needs beyond those that every run needs."""
        return tuple(self.table.get("requires", ()))

    @property
    def files(self) -> str:
        """The names, in lower case, of what the task reads in a folder of data; all for the user's own tasks."""
        names: str = self.table.get("files", "*")
        return names

    def defaults(self, task: str = "") -> dict[str, Any]:
        """Settings and keywords of the papers; a model's may differ from task to task."""
        merged = self.table | self.table.get(task, {})
        return {name: v for name, v in merged.items() if name not in FACTS and not isinstance(v, dict)}

    def load(self) -> type:
        """The class; a UsageError says what it lacks."""
        where = f"--{self.kind} {self.name}"
        path, _, name = self.table.get("class", self.name).partition(":")
        try:
            found = getattr(importlib.import_module(path), name, None)
        except Exception as error:
            raise UsageError(f"{where}: importing {path} failed: {type(error).__name__}: {error}") from error
        if not isinstance(found, type):
            raise UsageError(f"{where}: {path} has no class {name}")
        if self.kind == "model":
            from torch.nn import Module

            if not issubclass(found, Module):
                raise UsageError(f"{where}: {name} must be a subclass of torch.nn.Module")
        elif lack := [method for method in ("draw", "loss") if not callable(getattr(found, method, None))]:
            raise UsageError(f"{where}: {name} lacks {' and '.join(f'the method {method}' for method in lack)}")
        return found

    def keywords(self) -> Keywords:
        """Those of the class's constructor."""
        return _keywords(self.load(), sizes=self.kind == "model")


def find(kind: str, name: Any, option: str = "") -> Entry:
    """The task or model of this name; errors name the option that gave it."""
    if isinstance(name, str) and (name in papers()[kind] or re.fullmatch(r"\w+(\.\w+)*:\w+", name)):
        return Entry(kind, name)
    known = f"one of {', '.join(names(kind))}, or {OWN}"
    said = f"must be {known}, not {name!r}{check.nearest(str(name).lower(), names(kind))}"
    raise UsageError(f"{option} is missing: {known}" if name is None else f"{option} {said}")


@dataclass
class Keywords:
    """The keywords of a constructor, and of its bases where it passes **keywords on; an `open` one takes any others."""

    defaults: dict[str, Any]
    open: bool

    @property
    def required(self) -> set[str]:
        return {name for name, default in self.defaults.items() if default is REQUIRED}

    def take(self, names: Iterable[str]) -> dict[str, Any]:
        """Remove the keywords of these names and return their defaults."""
        return {name: self.defaults.pop(name) for name in names if name in self.defaults}

    def plain(self) -> dict[str, Any]:
        """The defaults that TOML can hold; the others are left to the constructor."""
        listed = {name: list(v) if isinstance(v, tuple) else v for name, v in self.defaults.items()}
        return {name: v for name, v in listed.items() if isinstance(v, bool | int | float | str | list)}


def _keywords(found: type, *, sizes: bool) -> Keywords:
    """With `sizes` the constructor is called as Class(inputs, hidden, **keywords)."""
    defaults: dict[str, Any] = {}
    for owner in found.__mro__[:-1]:
        if "__init__" not in vars(owner):
            continue
        passes_on = False
        for parameter in list(inspect.signature(vars(owner)["__init__"]).parameters.values())[1:]:
            refused = parameter.annotation in (None, "None", Never, "Never")  # there for its message alone
            passes_on |= parameter.kind is parameter.VAR_KEYWORD and not refused
            positional = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            size = sizes and ((positional and parameter.default is REQUIRED) or parameter.name in DECIDED)
            if (positional or parameter.kind is parameter.KEYWORD_ONLY) and not (size or refused):
                defaults.setdefault(parameter.name, parameter.default)
        if not passes_on:
            return Keywords(defaults, open=False)
    return Keywords(defaults, open=True)
