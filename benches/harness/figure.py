"""A measured number beside a bound, as a row of the bench: memory, an error."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.row import Row
from harness.timing import peak_of


@dataclass(frozen=True)
class Figure:
    """A measured number that must not exceed a bound; None if this machine cannot measure it."""

    name: str
    value: float | None
    unit: str
    bound: float
    facts: dict[str, float | None] = field(default_factory=dict)

    def measured(self, *_: object) -> dict[str, Any]:
        """Print it; returns its JSON entry."""
        entry: dict[str, Any] = {"row": self.name, "plan": "", "wrong": False, "bars": [], **self.facts}
        if self.value is None:
            print(f"{self.name}: not available", flush=True)
            return entry
        mark = "pass" if self.value <= self.bound else "MISS"
        print(f"{self.name}: {self.value:.2f} {self.unit}, at most {self.bound} {mark}", flush=True)
        bar = {"against": "bound", "ratio": self.value, "bar": self.bound, "goal": self.bound, "mark": mark, "peer": ""}
        return entry | {"bars": [bar]}


@dataclass(frozen=True)
class Later:
    """A figure that is measured when it is asked for, so that listing it costs nothing."""

    name: str
    figure: Callable[[str], Figure]

    def measured(self, *_: object) -> dict[str, Any]:
        """Measure and print it; returns its JSON entry."""
        return self.figure(self.name).measured()


def peak(row: Row, peer: str, bound: float, name: str) -> Figure:
    """The bytes that a call of our side of a row takes above those before it, in units of those of a peer."""
    theirs = next(side for side in row.peers if side.name == peer)
    own, other = peak_of(row.ours.run), peak_of(theirs.run)
    share = own / other if own is not None and other else None
    text = "" if other is None else f"of {other / 1e6:.0f} MB ({peer})"
    return Figure(name, share, text, bound, {"bytes isometry": own, f"bytes {peer}": other})
