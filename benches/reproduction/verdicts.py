"""How a result agrees with what the papers say of it, from the numbers alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from isometry.cli import registry
from reproduction.cell import longer_run
from reproduction.order import OPEN as OVERLAP
from reproduction.order import WORSE, compared
from reproduction.results import Entry

AS_CLAIMED, AGAINST, NOT_LEARNT, NOT_BETTER = "as claimed", "against the claim", "not learnt", "not better"
FAILS, ALSO, NOT_CLAIMED, NOT_RUN, OPEN = "fails as claimed", "also learnt", "not claimed", "not run", "open"
DENIED = "learnt against the claim"
#: The mark of a word, which every font has: the claim holds, does not at this size, does not, is open; learnt
#: without a claim, not learnt without one, no run.
KIND = {AS_CLAIMED: "✓", FAILS: "✓", NOT_LEARNT: "✗", NOT_BETTER: "✗", AGAINST: "!", DENIED: "!", OPEN: "?"}
KIND |= {ALSO: "●", NOT_CLAIMED: "○", NOT_RUN: "∅"}
LEVEL = 1.02  # of the other's loss, or below: not worse
KEY = re.compile(r"\b[A-Z][a-z]+20\d\d\b")


@dataclass(frozen=True)
class Found:
    """The results of a system on a task: the short runs, the longer ones, and whether these are its paper's own."""

    short: Entry | None = None
    longer: Entry | None = None
    own: bool = False

    @property
    def entries(self) -> list[Entry]:
        return [entry for entry in (self.short, self.longer) if entry is not None]

    @property
    def best(self) -> Entry | None:
        """That with the larger share of seeds that have learnt the task, the short one if equal."""
        return max(self.entries, key=lambda entry: entry.learnt / entry.seeds, default=None)


def short(own: Sequence[Entry]) -> dict[str, Entry]:
    """The short runs of a cell by model."""
    return {entry.model: entry for entry in own if entry.tier != "settle"}


def found(cell: str, model: str, own: Sequence[Entry]) -> Found:
    """The results of a system among those of a cell."""
    longer = next((entry for entry in own if entry.tier == "settle" and entry.model == model), None)
    return Found(short(own).get(model), longer, longer_run(cell, model).get("own", False))


def verdict(
    cell: str, claim: Mapping[str, Any], results: Found, others: Mapping[str, Entry]
) -> tuple[str, Entry | None]:
    """A word, and the result that it rests on; `others` are the short runs of all systems on the task."""
    best, than = results.best, claim.get("than", {}).get(cell, [])
    if best is None or not others.keys() >= set(than):
        return (NOT_RUN if says(claim, cell) else ""), None
    if names := claim.get("better", {}).get(cell):
        order = compared(cell, best, others, names).values()
        word = NOT_BETTER if WORSE in order else OPEN if OVERLAP in order else AS_CLAIMED if order else NOT_RUN
        return word, best if order else None
    if than:
        worse = [name for name in than if best.median > LEVEL * others[name].median]
        return (NOT_BETTER if worse else AS_CLAIMED), best
    seeds = "" if best.learnt == best.seeds else f", {best.learnt} of {best.seeds} seeds"
    if cell in claim.get("fails", ()):
        return (DENIED if best.learnt else FAILS), best
    if cell not in claim.get("learns", ()):
        return (ALSO + seeds if best.learnt else NOT_CLAIMED), best
    if best.learnt:
        return AS_CLAIMED + seeds, best
    last = results.longer or best
    return (AGAINST if results.own and results.longer else NOT_LEARNT), last


def says(claim: Mapping[str, Any], cell: str) -> bool:
    """Whether some paper says something of the system on this task."""
    return any(cell in claim.get(name, ()) for name in ("learns", "fails", "than", "better"))


def cited(text: str) -> str:
    """The text with papers by name: Helfrich2018 becomes Helfrich et al. 2018."""
    return KEY.sub(lambda key: short_name(key[0]), text)


@cache
def short_name(key: str) -> str:
    """Helfrich et al. 2018, or both authors."""
    authors = registry.papers()["paper"][key].partition(":")[0].split(", ")
    names = f"{authors[0]} et al." if len(authors) > 2 else " and ".join(authors)
    return f"{names} {key[-4:]}"
