"""What is run: a system on a task of the papers, at the size of a tier (cells.toml)."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isometry.cli import registry
from isometry.cli.errors import missing
from isometry.cli.resolve import WITHOUT_DATA
from isometry.cli.settings import SETTINGS, option

FACTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("cells.toml").read_text("utf-8"))
CELLS: dict[str, dict[str, Any]] = {cell["name"]: cell for cell in FACTS["cell"]}
DATA = Path(__file__).resolve().parents[2] / "runs/data"  # what docs/data.md says how to get
PARAMETERS, SEEDS = 5000, 3  # where a cell does not say otherwise
ROWS, EVALUATIONS = 100, 10  # of metrics.csv, on validation data
UNSAID = ("task", "set", "log_every", "evaluate_every")  # not options, or options that do not change a run


def stem(cell: str) -> str:
    """A cell's name in names of files and links."""
    return cell.replace(" ", "-")


def title(model: str) -> str:
    """A system's name in tables and pictures, that of its layer."""
    layer: str = registry.papers()["model"][model]["class"]
    return layer.partition(":")[2]


def longer_run(cell: str, model: str) -> Mapping[str, Any]:
    """The longer run of a system on a task, as cells.toml has it; empty if there is none."""
    return next((facts for facts in FACTS["settle"] if (facts["cell"], facts["model"]) == (cell, model)), {})


@dataclass(frozen=True)
class Job:
    """A system on a task: its updates, its size, options of the task and of the model, and the number of seeds."""

    cell: str
    tier: str
    model: str
    updates: int
    size: tuple[str, int]  # ("hidden", n), or ("parameters", p), for which a hidden size is solved for
    options: Mapping[str, Any]
    seeds: int
    data: Path = DATA

    @property
    def task(self) -> str:
        task: str = CELLS[self.cell]["task"]
        return task

    @property
    def path(self) -> Path | None:
        """The file or folder that the task reads."""
        name = CELLS[self.cell].get("data")
        return None if name is None else self.data / name

    @property
    def lack(self) -> str | None:
        """What has to be there before the job can run."""
        if self.path is not None:
            return None if self.path.exists() else f"there is no {self.path} (docs/data.md)"
        needed = registry.find("task", self.task).table.get(WITHOUT_DATA, {}).get("requires", ())
        return missing(needed, "it")

    def given(self, hidden: int | None = None) -> dict[str, Any]:
        """The options of `isometry compare`."""
        rows = {"log_every": max(1, self.updates // ROWS), "evaluate_every": max(1, self.updates // EVALUATIONS)}
        options = {"iterations": self.updates} | rows | dict(self.options)
        if hidden is not None or self.size[0] == "hidden":
            options["hidden"] = hidden or self.size[1]
        keywords = [f"{name}={json.dumps(value)}" for name, value in options.items() if name not in SETTINGS]
        settings = {name: str(value) for name, value in options.items() if name in SETTINGS}
        if self.path is not None:
            settings["data"] = str(self.path)
        return settings | {"task": self.task, "set": keywords}

    def command(self, hidden: int) -> str:
        """The `isometry train` that repeats a run, but for --seed; rows and evaluations do not change it."""
        given = self.given(hidden)
        if self.path is not None:
            given["data"] = self.path.name
        words = [f"{option(name)} {value}" for name, value in given.items() if name not in UNSAID]
        words += [f"--set {text}" for text in given["set"]]
        return f"isometry train {self.task} --model {self.model} {' '.join(words)}"


def jobs(tier: str, cells: Sequence[str] = (), models: Sequence[str] = (), data: Path = DATA) -> list[Job]:
    """All of a tier, or those of some cells and models."""
    found = [replace(job, data=data) for job in (_longer() if tier == "settle" else _short(tier))]
    return [job for job in found if (not cells or job.cell in cells) and (not models or job.model in models)]


def _longer() -> list[Job]:
    found = []
    for facts in FACTS["settle"]:
        options = CELLS[facts["cell"]]["options"] | facts.get("options", {})
        size, seeds = ("hidden", facts["hidden"]), facts.get("seeds", 1)
        found.append(Job(facts["cell"], "settle", facts["model"], facts["updates"], size, options, seeds))
    return found


def _short(name: str) -> list[Job]:
    tier, found = FACTS["tier"][name], []
    for cell in CELLS.values():
        for model in cell.get("models") or registry.names("model"):
            facts = cell | cell.get("change", {}).get(model, {})
            options = cell["options"] | facts["options"]
            size = ("parameters", tier.get("parameters", facts.get("parameters", PARAMETERS)))
            if "hidden" in facts and "parameters" not in tier:
                size = ("hidden", facts["hidden"])
            updates = max(2, round(tier.get("share", 1.0) * facts["updates"]))
            seeds = tier.get("seeds", facts.get("seeds", SEEDS))
            found.append(Job(cell["name"], name, model, updates, size, options, seeds))
    return found
