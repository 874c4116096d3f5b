"""The table of settings, read by parser, config.toml and checks, and config.toml itself.

Keywords of the layer and the task are those of their constructors.
"""

import math
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isometry._core import __version__
from isometry._threads import MOST, get_num_threads
from isometry.cli.errors import UsageError
from isometry.cli.files import toml_of
from isometry.cli.optim import ALGORITHMS, OF_MATRICES

TABLES = ("layer", "task_options")  # keywords of the model's and of the task's class
DIGEST = "data_digest"  # of what a run reads, by isometry.cli.data; an entry of config.toml that no option sets
# constructors' names for settings, as in their messages
ALIASES = {"hidden_size": "hidden", "steps": "length", "path": "data"}


@dataclass(frozen=True)
class Setting:
    """One option of `isometry train` and one name of config.toml; a `default` may be a function that returns it."""

    kind: type
    help: str
    default: Any = None
    least: float = -math.inf
    most: float = math.inf
    among: tuple[str, ...] = ()
    form: tuple[str, str] | None = None  #: a regular expression, and what it says

    @property
    def value(self) -> Any:
        """The default itself."""
        return self.default() if callable(self.default) else self.default

    @property
    def expected(self) -> str:
        if self.form:
            return self.form[1]
        if self.among:
            return f"one of {', '.join(self.among)}"
        if self.kind is str:
            return "a path"
        noun = "an integer" if self.kind is int else "a finite number"
        return f"{noun} >= {self.least}" if self.most == math.inf else f"{noun} of {self.least}..{self.most}"

    def parse(self, text: str) -> Any:
        """The value of a word of the command line; a word that cannot be read stays text, for `check` to refuse."""
        try:
            value: object = self.kind(text)
            return value
        except ValueError:
            return text

    def check(self, value: Any, option: str) -> Any:
        """The value in its type: an integer is a number too, but a bool is neither."""
        if self.kind is float and type(value) is int:
            value = float(value)
        right = type(value) is self.kind and (not self.among or value in self.among) and value != ""
        right = right and (self.form is None or re.fullmatch(self.form[0], str(value)) is not None)
        if not right or (self.kind is not str and not (math.isfinite(value) and self.least <= value <= self.most)):
            raise UsageError(f"{option} must be {self.expected}, not {value!r}")
        return value


def own_threads() -> int:
    """The cores, shared with the other processes that torchrun has started on this machine."""
    together = os.environ["LOCAL_WORLD_SIZE"] if "TORCHELASTIC_RUN_ID" in os.environ else 1
    return max(1, get_num_threads() // int(together))


#: The devices whose operations of torch are known to do.
DEVICES = (r"cpu|(cuda|mps|xpu)(:\d+)?", "cpu, cuda, mps or xpu, or one of several, as cuda:1")

SETTINGS = {
    "hidden": Setting(int, "size of the state", 128, least=1),
    "length": Setting(int, "the task's T: steps of adding, delay of copying", least=1),
    "iterations": Setting(int, "parameter updates in all", 2000, least=1),
    "batch": Setting(int, "sequences per update", 50, least=1),
    "lr": Setting(float, "learning rate", 1e-3, least=0),
    "recurrent_lr": Setting(float, "learning rate of the recurrent parameters", 1e-4, least=0),
    "phases_lr": Setting(float, "learning rate of trained phases (default: as recurrent)", least=0),
    "optimizer": Setting(str, "optimiser", "adam", among=tuple(ALGORITHMS)),
    "recurrent_optimizer": Setting(
        str, "optimiser of the recurrent parameters", "adam", among=(*ALGORITHMS, *OF_MATRICES)
    ),
    "phases_optimizer": Setting(str, "optimiser of trained phases (default: as recurrent)", among=tuple(ALGORITHMS)),
    "clip": Setting(float, "largest norm of the gradient; 0 is none", 0.0, least=0),
    "penalty": Setting(float, "weight of the layer's penalty in the loss; 0 is none", 0.0, least=0),
    "h0_bound": Setting(float, "a trained initial state starts uniform on +-X", 0.0, least=0),
    "log_every": Setting(int, "updates per row of metrics.csv", 10, least=1),
    "evaluate_every": Setting(int, "updates per evaluation on held-out data (default: those of a row)", least=1),
    "seed": Setting(int, "the same seed gives the same run", 0, least=0, most=2**64 - 1),
    "threads": Setting(
        int, "thread budget (default: the cores, or this process's share)", own_threads, least=1, most=MOST
    ),
    "backend": Setting(str, "where the kernels run", "cpu", among=("cpu", "gpu")),
    "device": Setting(str, "where torch's tensors are", "cpu", form=DEVICES),
    "data": Setting(str, "file or folder of a task that reads one"),
}


class Settings(dict[str, Any]):
    """The table of config.toml, complete; `origins` says what the user typed for a name."""

    def __init__(self, *arguments: Any, **values: Any) -> None:
        super().__init__(*arguments, **values)
        self.origins: dict[str, str] = {}

    @property
    def label(self) -> str:
        """task-model-seed; a user's class is named by its class name."""
        task, model = (self[kind].rpartition(":")[2].lower() for kind in ("task", "model"))
        return f"{task}-{model}-{self['seed']}"

    def option(self, name: str) -> str:
        """The way the user gave this setting, for messages."""
        return self.origins.get(name, option(name) if name in ("task", "model", *SETTINGS) else f"--set {name}")

    def where(self, kind: str) -> str:
        """The way the user gave the task or the model, and its name."""
        said = self.origins.get(kind, "")
        return f"{said if ':' in said else f'--{kind}'} {self[kind]}"

    def blame(self, error: Exception, where: str) -> UsageError:
        """The message of an error in a constructor or a draw that begins with an argument's name, in terms of its
        option."""
        word, _, rest = str(error).partition(" ")
        name, colon = word.removesuffix(":"), word.endswith(":")
        name = ALIASES.get(name, name)
        if name in SETTINGS or any(name in self[table] for table in TABLES):
            return UsageError(f"{self.option(name)}{':' * colon} {rest}")
        kind = "" if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: "
        return UsageError(f"{where}: {kind}{error}")

    def as_toml(self) -> str:
        """The text of config.toml, from which `read` restores the table."""
        import tomli_w

        return tomli_w.dumps({"isometry": __version__} | {k: v for k, v in self.items() if v is not None})


def option(name: str) -> str:
    """The option for a setting."""
    return "TASK" if name == "task" else "--" + name.replace("_", "-")


def spelled(name: str, value: object) -> list[str]:
    """The words of the command line that give an option its value, which may begin with a dash."""
    word, text = option(name), str(value)
    return [f"{word}={text}"] if text.startswith("-") else [word, text]


def read(path: str | Path) -> dict[str, Any]:
    """The table of a config file, checked for names that mean nothing."""
    table = toml_of(Path(path), UsageError)
    table.pop("isometry", None)
    for name, value in table.items():
        if name not in {"task", "model", DIGEST, *SETTINGS, *TABLES}:
            raise UsageError(f"{path}: unknown name {name!r}")
        if (name in TABLES) != isinstance(value, dict):
            raise UsageError(f"{path}: {name} must be {'a table' if name in TABLES else 'a value'}, not {value!r}")
    return table


def stored(path: Path) -> Settings:
    """The settings of a run, which its config.toml holds: complete, each of its kind."""
    settings = Settings(read(path))
    if not isinstance(settings.get(DIGEST, ""), str):
        raise UsageError(f"{path}: {DIGEST} must be a text, not {settings[DIGEST]!r}")
    may_lack = {"batch"} | {name for name, setting in SETTINGS.items() if setting.default is None}
    for name in ("task", "model", *SETTINGS, *TABLES):
        settings.origins[name] = f"{path}: {name}"
        if name in settings and name in SETTINGS:
            settings[name] = SETTINGS[name].check(settings[name], f"{path}: {name}")
        elif name not in settings and name not in may_lack:
            raise UsageError(f"{path}: {name} is missing")
    for table in TABLES:
        settings.origins |= {name: f"{path}: {name}" for name in settings[table]}
    return settings


def literal(text: str) -> Any:
    """The value of KEY=VALUE: a TOML value where it reads as one, Python's True or False, else the text itself."""
    if text in ("True", "False"):
        return text == "True"
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = found["value"]
    return value if len(found) == 1 and isinstance(value, bool | int | float | str | list) else text
