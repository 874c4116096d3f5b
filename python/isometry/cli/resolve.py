"""Settings from the command line or a config file, completed by defaults:

option or --set  >  --config FILE  >  papers.toml: model on the task, model, task  >  constructor  >  SETTINGS
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isometry.cli import registry
from isometry.cli.errors import UsageError, missing, require
from isometry.cli.registry import REQUIRED, Entry, Keywords
from isometry.cli.settings import DIGEST, SETTINGS, TABLES, Settings, literal, option, read

WITHOUT_DATA = "without_data"  # the table of a task for runs without --data
EXTRAS = ("torch", "tqdm", "matplotlib", "safetensors", "tomli_w", "filelock")


def resolve(options: Mapping[str, Any], config: str | Path | None = None) -> Settings:
    """The settings of an `isometry train`: checked, both classes imported, nothing built."""
    settings = Settings()
    given, tables = _given(options, config, settings)
    task, model = (registry.find(kind, given.get(kind), settings.option(kind)) for kind in ("task", "model"))
    require((*EXTRAS, *task.requires), "train")
    entries = dict(zip(TABLES, (model, task), strict=True))
    known = {table: entry.keywords() for table, entry in entries.items()}
    taken = known["task_options"].take(registry.TAKEN)

    values = {name: setting.value for name, setting in SETTINGS.items()}
    values |= {name: default for name, default in taken.items() if default is not REQUIRED}
    without = WITHOUT_DATA if given.get("data") is None else ""
    values |= task.defaults(without) | model.defaults(task.name)
    sizes = {name: (values | given)[name] for name in ("hidden", "length")}
    values = {name: formula(value, sizes) for name, value in values.items()}
    settings |= {"task": task.name, "model": model.name} | {name: (values | given)[name] for name in SETTINGS}
    _check_taken(settings, task, taken, given)

    _place(tables, known, settings)
    for table, entry in entries.items():
        papers = {name: values[name] for name in entry.defaults(task.name) if name not in SETTINGS}
        shared = task.table.get("layer", {}) if table == "layer" else {}
        shared = {name: value for name, value in shared.items() if name in known[table].defaults}
        settings[table] = known[table].plain() | shared | papers | tables[table]
        for name in known[table].required - settings[table].keys():
            raise UsageError(f"--set {name}=VALUE is missing: {entry.name} has no default for it")
    _check_text(settings, settings)
    return settings


def _check_text(table: Mapping[str, Any], settings: Settings) -> None:
    """Refuse what config.toml cannot hold: text that is not UTF-8, such as bytes of a path in another encoding."""
    for name, value in table.items():
        if isinstance(value, dict):
            _check_text(value, settings)
        else:
            try:
                json.dumps(value, ensure_ascii=False, default=str).encode()
            except UnicodeEncodeError as error:
                raise UsageError(f"{settings.option(name)} must be text in UTF-8, not {value!r}") from error


def _given(
    options: Mapping[str, Any], config: str | Path | None, settings: Settings
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Checked settings, and keywords by table; those of --set that are not settings are in the table ""."""
    given = {} if config is None else read(config)
    given.pop(DIGEST, None)
    tables = {name: given.pop(name, {}) for name in TABLES} | {"": {}}
    # what the command itself sets, as it stands in a config.toml that has every keyword of the layer
    tables["layer"] = {k: v for k, v in tables["layer"].items() if k not in registry.DECIDED or v is not False}
    for name in (*given, *tables["layer"], *tables["task_options"]):
        settings.origins[name] = f"{config}: {name}"
    for name in ("task", "model", *SETTINGS):
        if (value := options.get(name)) is not None:
            given[name] = SETTINGS[name].parse(value) if name in SETTINGS and isinstance(value, str) else value
            settings.origins[name] = option(name)
    for assignment in options.get("set") or ():
        key, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise UsageError(f"--set must be KEY=VALUE, not {assignment!r}")
        (given if key in SETTINGS else tables[""])[key] = literal(text)
        settings.origins[key] = f"--set {key}"
    for name in given.keys() & SETTINGS.keys():
        given[name] = SETTINGS[name].check(given[name], settings.option(name))
    return given, tables


def formula(value: Any, sizes: Mapping[str, Any]) -> Any:
    """A value of papers.toml: "= ..." is computed from hidden and length."""
    if not (isinstance(value, str) and value.startswith("=")):
        return value
    return eval(value[1:], {"__builtins__": {}, "min": min, "max": max, "sqrt": math.sqrt}, dict(sizes))


def _check_taken(settings: Settings, task: Entry, taken: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse those of length, batch and data that the task's constructor does not ask for."""
    for name in ("length", "batch", "data"):
        if name not in taken:
            if name in given:
                raise UsageError(f"{settings.option(name)} means nothing to the task {task.name}")
            settings[name] = None
        elif settings[name] is None and taken[name] is REQUIRED:
            raise UsageError(f"{settings.option(name)} is missing: the task {task.name} has no default for it")
    needed = task.table.get(WITHOUT_DATA, {}).get("requires", ())
    if settings["data"] is None and (lack := missing(needed, f"without it the task {task.name}")):
        raise UsageError(f"{settings.option('data')} is missing: {lack}")
    if settings["data"] is not None:
        if not os.path.exists(settings["data"]):
            moved = "" if settings.origins.get("data", "").startswith("--") else "; --data PATH names another place"
            raise UsageError(f"{settings.option('data')} {settings['data']}: no such file{moved}")
        settings["data"] = os.path.abspath(settings["data"])


def _place(tables: dict[str, dict[str, Any]], known: Mapping[str, Keywords], settings: Settings) -> None:
    """Put each keyword of --set into the table of the class that takes it; refuse what neither takes."""
    for name, value in tables.pop("").items():
        owners = [table for table in TABLES if name in known[table].defaults] or [t for t in TABLES if known[t].open]
        if len(owners) == 2:
            raise UsageError(f"--set {name}: layer and task both take it; say which in a --config file")
        tables[owners[0] if owners else "layer"][name] = value
    for table, keywords in tables.items():
        for name in keywords:
            if name not in known[table].defaults and not known[table].open:
                names = sorted(set().union(*(k.defaults for k in known.values())))
                raise UsageError(
                    f"{settings.option(name)} is no keyword of layer or task; these are: {', '.join(names)}"
                )
