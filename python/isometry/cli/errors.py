"""The two kinds of failure of a command, and the import of an optional package."""

from __future__ import annotations

import importlib
from types import ModuleType


class UsageError(Exception):
    """An argument is wrong: exit status 2."""


class Failure(Exception):
    """The arguments are right but the work cannot be done: exit status 1."""


# distributions whose name differs from that of their module
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def require(*modules: str, command: str = "train") -> ModuleType:
    """Import optional modules and return the first; a missing one is a Failure that says what to install."""
    imported = []
    for name in modules:
        try:
            imported.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            missing = (error.name or name).split(".")[0]
            if missing != name.split(".")[0]:
                raise
            package = DISTRIBUTIONS.get(missing, missing)
            message = f"isometry {command} needs {package}, which is not installed: pip install isometry[train]"
            raise Failure(message) from error
    return imported[0]
