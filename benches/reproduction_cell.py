"""A cell of the reproduction: a task at the size of a tier, and its runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from isometry.cli.compare.plan import Planned
from isometry.cli.settings import SETTINGS

ROWS, EVALUATIONS = 100, 10  # of metrics.csv, on validation data


@dataclass
class Cell:
    """A task of the report at the size of a tier, its runs, and the models for which there are none."""

    facts: dict[str, Any]
    updates: int
    parameters: int
    runs: dict[str, list[Planned]]
    missing: dict[str, str]

    @property
    def name(self) -> str:
        name: str = self.facts["name"]
        return name

    @property
    def stem(self) -> str:
        """In names of files."""
        return self.name.replace(" ", "-")

    def given(self) -> dict[str, Any]:
        """The options of `isometry compare`."""
        options = {"iterations": self.updates, "log_every": max(1, self.updates // ROWS)}
        if "evaluate_every" in SETTINGS:
            options["evaluate_every"] = max(1, self.updates // EVALUATIONS)
        options |= self.facts["options"]
        keywords = [f"{name}={json.dumps(value)}" for name, value in options.items() if name not in SETTINGS]
        settings = {name: str(value) for name, value in options.items() if name in SETTINGS}
        return settings | {"task": self.facts["task"], "set": keywords}
