"""The runs of a comparison: settings, folder and state of each."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from isometry.cli import registry
from isometry.cli.data import digest
from isometry.cli.errors import UsageError
from isometry.cli.registry import Entry
from isometry.cli.resolve import formula, resolve
from isometry.cli.run_folder import RunFolder
from isometry.cli.settings import DIGEST, SETTINGS, Settings, spelled, stored
from isometry.cli.train import CHANGEABLE


@dataclass(frozen=True)
class Planned:
    """One run: its options for `isometry train`, and what follows from them."""

    name: str
    given: dict[str, Any]
    settings: Settings
    folder: RunFolder

    def command(self, threads: int | None) -> list[str] | None:
        """The arguments of `isometry train` that start or continue this run; None if it has ended."""
        if self.folder.config.is_file():
            done, total = self._done(), self.settings["iterations"]
            if done >= total:
                return None
            if self.folder.begun and not self.folder.checkpoint.is_file():
                raise UsageError(
                    f"{self.folder.path} cannot go on: {done:,} of {total:,} updates are done, and its checkpoint is "
                    "gone; move it away, or give another folder with --out"
                )
            changed = {"resume": self.folder.path, "iterations": total, "threads": threads}
            changed |= {name: self.settings[name] for name in ("backend", "device", "data")}
            return ["train", *(word for name, value in changed.items() if value for word in spelled(name, value))]
        words = ["train", self.settings["task"], "--model", self.settings["model"], *spelled("out", self.folder.path)]
        for name, value in (self.given | {"threads": threads}).items():
            if name in SETTINGS and value is not None:
                words += spelled(name, value)
        return words + [word for text in self.given["set"] for word in spelled("set", text)]

    def _done(self) -> int:
        """The updates made: those of the checkpoint, and without one those of the last row."""
        from isometry.cli import checkpoint

        if self.folder.checkpoint.is_file():
            iteration: int = checkpoint.read(self.folder.checkpoint)[0]["iteration"]
            return iteration
        return int(max(self.folder.columns().get("iteration", [0])))


def plan(
    given: Mapping[str, Any], models: Sequence[str], seeds: Sequence[int], parameters: int | None, out: Path
) -> list[Planned]:
    """The runs of every model with every seed, below the folder `out`; nothing is written.

    `given` holds the options of `isometry train` as they were typed, by name. With `parameters` the hidden size of each
    model is the one that gives its network about that many.
    """
    task = registry.find("task", given.get("task"), "TASK")
    entries = [registry.find("model", name, "--models") for name in models]
    names = [_short(entry.name) for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--models has two of the name {name}")
    found, known = [], cache(partial(digest, names=task.files))  # one reading of the data for all runs
    for entry, name in zip(entries, names, strict=True):
        own = dict(given) | {"model": entry.name, "set": _assignments(given.get("set") or (), task, entry, entries)}
        for text in own["set"]:
            key = text.partition("=")[0].strip()
            if key == "seed" or (key == "hidden" and parameters is not None):
                raise UsageError(f"--set {key}: {'--seeds' if key == 'seed' else '--parameters'} gives it")
        if parameters is not None:
            own["hidden"] = str(_hidden(own, parameters))
        for seed in seeds:
            one = own | {"seed": str(seed)}
            run = Planned(f"{name}-{seed}", one, resolve(one), RunFolder(out / f"{name}-{seed}"))
            _check_same(run, known)
            found.append(run)
    return found


def _short(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _assignments(texts: Sequence[str], task: Entry, model: Entry, models: Sequence[Entry]) -> list[str]:
    """Those of --set that concern a model: MODEL.KEY=VALUE of this one, KEY=VALUE unless only others take it."""
    found = []
    for text in texts:
        key = text.partition("=")[0].strip()
        owner = next((m for m in models if key.startswith(m.name + ".")), None)
        if owner is not None:
            if owner == model:
                found.append(text.strip()[len(model.name) + 1 :])
        elif key in SETTINGS or _takes(task, key) or _takes(model, key) or not any(_takes(m, key) for m in models):
            found.append(text)
    return found


def _takes(entry: Entry, key: str) -> bool:
    keywords = entry.keywords()
    return keywords.open or key in keywords.defaults


def _hidden(given: dict[str, Any], parameters: int) -> int:
    """The hidden size that gives the model about this number of parameters."""
    from isometry.cli.build import make_task
    from isometry.cli.compare import sizes

    task = make_task(resolve(given))
    return sizes.solve(parameters, partial(_count, given, task))


def _count(given: dict[str, Any], task: Any, hidden: int) -> int:
    """The parameters of a network of this size, if it suits the model: a Kronecker product of a prime size is dense."""
    from isometry.cli.compare import sizes

    model = registry.find("model", given["model"])
    if not formula(model.table.get("sizes", True), {"hidden": hidden}):
        raise UsageError(f"--parameters: {model.name} has no size that suits it near {hidden}")
    settings = resolve(given | {"hidden": str(hidden)})
    return sizes.count(sizes.network_of(settings, task), settings)


def _check_same(run: Planned, known: Callable[[str], str | None]) -> None:
    """A run that is already in the folder must be the planned one, or a part of it, of the same data wherever they
    lie."""
    if not run.folder.config.is_file():
        run.folder.refuse_files()
        return
    kept, data = stored(run.folder.config), run.settings["data"]
    there = resolve({"data": data} if kept.get("data") else {}, run.folder.config)
    for name in there.keys() - CHANGEABLE:
        if there[name] != run.settings[name]:
            _refuse(run, name, there[name])
    if kept.get(DIGEST) is None or data is None:
        same = there["data"] == data and (data is None or os.path.abspath(kept["data"]) == data)
    else:
        same = kept[DIGEST] == known(data)
    if not same:
        _refuse(run, "data", kept.get("data"))


def _refuse(run: Planned, name: str, value: object) -> NoReturn:
    raise UsageError(
        f"{run.folder.path} holds a run with other settings ({name} is {value!r} there, {run.settings[name]!r} here): "
        "--out names another folder"
    )
