"""How commands end: exit statuses, the two kinds of error, and the packages that a command may lack."""

import importlib.util
from collections.abc import Iterable

SUCCESS, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130


class UsageError(ValueError):
    """An argument is wrong: exit status 2."""


class Failure(RuntimeError):
    """The arguments are right but the work cannot be done: exit status 1."""


class Caution(UserWarning):
    """What a user should know of a command that goes on: a line on standard error."""


# optional packages: the module that is imported -> the distribution that is installed
PACKAGES = {
    "torch": "torch",
    "tqdm": "tqdm",
    "matplotlib": "matplotlib",
    "safetensors": "safetensors",
    "tomli_w": "tomli-w",
    "filelock": "filelock",
    "sklearn": "scikit-learn",
}


def missing(modules: Iterable[str], user: str) -> str | None:
    """A message about the modules that are not installed, None if all are; imports none of them."""
    absent = [PACKAGES.get(name, name) for name in modules if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    verb = "is" if len(absent) == 1 else "are"
    return f"{user} needs {' and '.join(absent)}, which {verb} not installed: pip install {' '.join(absent)}"


def require(modules: Iterable[str], command: str) -> None:
    """A Failure if one of the modules is not installed."""
    if lack := missing(modules, f"isometry {command}"):
        raise Failure(lack)


def positive(option: str, text: str) -> int:
    """The value of an option that is a number of things."""
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{option} must be an integer >= 1, not {text!r}")
    return int(text)
