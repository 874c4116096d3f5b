"""A fault in the sources: lines of a file, and what stands there instead.

Faults of Rust are built together; the environment variable ISOMETRY_PLANTED chooses one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).with_name("faults.jsonl")
#: Area -> the Rust expression that is true where the fault of a number is chosen.
PLANTED = {
    "kernels": "crate::planted({})",
    "core": "isometry_kernels::planted({})",
    "seam": "isometry_core::internal::planted({})",
}
CHOSEN = """
#[inline(always)]
pub fn planted(number: u32) -> bool {
    static CHOSEN: std::sync::LazyLock<u32> =
        std::sync::LazyLock::new(|| std::env::var("ISOMETRY_PLANTED").map_or(0, |n| n.parse().unwrap_or(0)));
    *CHOSEN == number
}
"""


@dataclass(frozen=True)
class Fault:
    """Where `old` stands for the nth time in a file, `new` does; that of Rust holds both, and asks `{planted}`."""

    number: int
    area: str
    kind: str
    file: str
    old: str
    new: str
    nth: int

    def into(self, text: str) -> str | None:
        """The text with the fault; None where its lines are gone."""
        parts = text.split(self.old)
        if len(parts) == 1:
            return None
        at = min(self.nth, len(parts) - 2) + 1
        asked = PLANTED[self.area].format(self.number) if self.area in PLANTED else ""
        new = self.new.replace("{planted}", asked)
        return self.old.join(parts[:at]) + new + self.old.join(parts[at:])


def read(path: Path = FAULTS) -> list[Fault]:
    return [Fault(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def planted(faults: Iterable[Fault]) -> tuple[dict[str, str], set[int]]:
    """The files of Rust with their faults, by name, and the numbers of those whose lines are gone."""
    asked = {"rust/kernels/src/lib.rs": CHOSEN, "rust/core/src/internal.rs": "pub use isometry_kernels::planted;\n"}
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in asked}
    gone = set()
    for fault in faults:
        if fault.area in PLANTED:
            path = ROOT / fault.file
            text = texts.get(fault.file) or (path.read_text(encoding="utf-8") if path.exists() else "")
            if (found := fault.into(text)) is None:
                gone.add(fault.number)
            else:
                texts[fault.file] = found
    return {name: text + asked.get(name, "") for name, text in texts.items()}, gone
