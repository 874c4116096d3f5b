"""The settings of a run: options take precedence over the config file, and this over the papers' defaults.

    option or --set  >  --config FILE  >  model's default for the task  >  task's default  >  general default

A keyword of the layer, the task or the training belongs to exactly one table; `--set KEY=VALUE` finds it by its name.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from isometry.cli import models, tasks, toml
from isometry.cli.errors import Failure, UsageError

# names allowed as options and at the top level of a config file, with their types
SCALARS = {
    "hidden": int, "length": int, "iterations": int, "batch": int, "lr": float, "recurrent_lr": float,
    "seed": int, "threads": int, "backend": str, "data": str,
}  # fmt: skip
TABLES = ("layer", "data_options", "training")
SCHEMA = {"task", "model", "isometry", *SCALARS, *TABLES}
# keywords of the training itself; clip is the largest norm of the gradient (0: none), a run is logged and its W
# measured every log_every iterations
TRAINING: dict[str, Any] = {"optimizer": "adam", "recurrent_optimizer": "adam", "clip": 0.0, "log_every": 10}
# models with further parameter groups add GROUP_optimizer and GROUP_lr
GENERAL = {"hidden": 128, "lr": 1e-3, "recurrent_lr": 1e-4, "seed": 0, "backend": "cpu"}


@dataclass(frozen=True)
class Settings:
    """One run. `length` is None for a task without one, `data` for a task that reads no file."""

    task: str
    model: str
    hidden: int
    length: int | None
    iterations: int
    batch: int
    lr: float
    recurrent_lr: float
    seed: int
    threads: int
    backend: str
    data: str | None
    layer: dict[str, Any] = field(default_factory=dict)
    data_options: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.task}-{self.model}-{self.seed}"

    def as_toml(self) -> str:
        """The text of config.toml; `read` returns the same settings."""
        from isometry import __version__

        table = {f.name: getattr(self, f.name) for f in fields(self)}
        return toml.dumps({"isometry": __version__} | {k: v for k, v in table.items() if v is not None})


def read(path: str | Path) -> dict[str, Any]:
    """The tables of a config file, checked for unknown names."""
    try:
        table = toml.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from error
    for name, value in table.items():
        if name not in SCHEMA:
            raise UsageError(f"{path}: unknown name {name!r}")
        if (name in TABLES) != isinstance(value, dict):
            raise UsageError(f"{path}: {name}: expected {'a table' if name in TABLES else 'a value'}, got {value!r}")
    return table


def resolve(options: argparse.Namespace, config: Mapping[str, Any] | None = None) -> Settings:
    """Complete the options of `isometry train`, from the command line or a config, with the defaults."""
    given = dict(config or {})
    given |= {k: v for k in ("task", "model", *SCALARS) if (v := getattr(options, k, None)) is not None}
    task = _known("task", given.get("task"), tasks)
    model = _known("model", given.get("model"), models)
    if given.get("length") is not None and task.defaults()["length"] is None:
        raise UsageError(f"--length: the task {task.name} has no length to choose")
    if given.get("data") is not None and not task.reads_file:
        raise UsageError(f"--data: the task {task.name} reads no file")
    length = given.get("length", task.defaults()["length"])
    defaults = GENERAL | TRAINING | {"threads": _threads()} | task.defaults() | model.defaults(task.name)
    values = {name: _typed(name, given.get(name, defaults.get(name)), kind) for name, kind in SCALARS.items()}
    known = {
        "layer": model.keywords(models.Setting(task.name, length, values["hidden"])),
        "data_options": task.keywords(),
        "training": {k: v for k, v in defaults.items() if k in TRAINING or k.endswith(("_optimizer", "_lr"))},
    }
    known["training"].pop("recurrent_lr")  # has its own option
    for name in TABLES:
        for key, value in given.get(name, {}).items():
            _assign(known, key, value, only=name)
    for assignment in getattr(options, "assignments", []):
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set: expected KEY=VALUE, got {assignment!r}")
        _assign(known, key.strip(), toml.value(text.strip()))
    _check(values, known["training"])
    return Settings(task=task.name, model=model.name, **values, **known)


def _known(kind: str, name: object, registry: Any) -> Any:
    option = "TASK" if kind == "task" else "--model"
    if name is None:
        raise UsageError(f"{option} is missing; expected one of {', '.join(registry.names())}")
    if name not in registry.names():
        raise UsageError(f"{kind}: expected one of {', '.join(registry.names())}, got {name!r}")
    return registry.find(name)


def _assign(known: Mapping[str, dict[str, Any]], key: str, value: Any, only: str | None = None) -> None:
    for table in [only] if only else TABLES:
        if key in known[table]:
            known[table][key] = _typed(key, value, type(known[table][key]))
            return
    names = sorted(name for table in ([only] if only else TABLES) for name in known[table])
    raise UsageError(f"{only or '--set'}: unknown keyword {key!r}; known here: {', '.join(names)}")


def _typed(name: str, value: Any, kind: type) -> Any:
    """The value in its keyword's type; an integer is accepted as a float, a bool as neither."""
    if value is None:
        return None
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        expected = {int: "an integer", float: "a number", bool: "true or false", str: "a name"}[kind]
        raise UsageError(f"{name}: expected {expected}, got {value!r}")
    return value


def _check(values: Mapping[str, Any], training: Mapping[str, Any]) -> None:
    from isometry._threads import MOST
    from isometry.cli.optim import ALGORITHMS

    for name in ("hidden", "length", "iterations", "batch", "threads", "log_every"):
        value = training[name] if name in training else values[name]
        if value is not None and value < 1:
            raise UsageError(f"{name}: expected an integer >= 1, got {value}")
    for name, value in {**values, **training}.items():
        if (name == "clip" or name.endswith("lr")) and not 0 <= value < float("inf"):
            raise UsageError(f"{name}: expected a finite number >= 0, got {value}")
        if name.endswith("optimizer") and value not in ALGORITHMS:
            raise UsageError(f"{name}: expected one of {', '.join(ALGORITHMS)}, got {value!r}")
    if values["threads"] > MOST:
        raise UsageError(f"threads: expected an integer of 1..{MOST}, got {values['threads']}")
    if values["seed"] < 0:
        raise UsageError(f"seed: expected an integer >= 0, got {values['seed']}")
    if values["backend"] not in ("cpu", "gpu"):
        raise UsageError(f"backend: expected cpu or gpu, got {values['backend']!r}")
    if values["backend"] == "gpu":
        raise Failure("backend: this build has no GPU backend; isometry info lists what there is")


def _threads() -> int:
    from isometry import get_num_threads

    return get_num_threads()
