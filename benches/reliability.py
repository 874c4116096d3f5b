"""Runs the checks of reliability and writes their figures: docs/figures/reliability.json and docs/reliability.md.

    python benches/reliability.py                          all checks, in full: most of a day on two cores
    python benches/reliability.py fuzz --minutes 30        one check; the figures of the others stay as they are
    python benches/reliability.py --page                   the page alone, from the figures

conformance    the acceptance suite beside the checkout, or else the laws of tests/
fuzz           random calls, `--calls` in all; a run goes on where the last one has stopped (--fresh: begins anew)
kill           trainings killed at `--moments` random moments and resumed
memory         a training of `--minutes` with its memory watched
threads        Python threads, forked data loaders and nested pools, each for `--seconds`
mutation       `--files` damaged files of every format, and damaged folders of runs
valgrind       the Rust tests under memcheck, or those with a name of --filter

Every check runs in processes of its own, so that a crash or a hang is a figure. The exit status is 1 if a check failed.
"""

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from checks import CHECKS
from checks.check import ROOT, Outcome
from figures import filled
from isometry.cli.info import facts

FIGURES, PAGE = ROOT / "docs/figures/reliability.json", ROOT / "docs/reliability.md"
SHOWN = ("processor", "python", "numpy", "torch", "simd")  # of the machine
Entry = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--minutes", type=float, help="of memory (default: 60); the most of fuzz (default: no limit)")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--filter", default="", metavar="NAME,...")
    parser.add_argument("--seed", type=int, default=0, help="of kill and mutation")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--suite", type=Path, metavar="FOLDER", help="the acceptance suite")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--json", type=Path, default=FIGURES, metavar="FILE")
    parser.add_argument("--out", type=Path, default=PAGE, metavar="FILE", help="the page")
    options = parser.parse_args(arguments)
    if unknown := set(options.checks) - set(CHECKS):
        parser.error(f"no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    failed = False
    for name in [] if options.page else options.checks or CHECKS:
        for entry in checked(name, options, read(options.json).get(name, {})):
            write(options, name, entry)
            print(f"{name}: {figures(name, entry)}", *entry["failures"], sep="\n  ", flush=True)
            failed |= bool(entry["failures"])
    if options.page:
        options.out.write_text(page(read(options.json)), encoding="utf-8")
    return int(failed)


def read(path: Path) -> dict[str, Entry]:
    """The entries of the file by the names of their checks."""
    found: dict[str, Entry] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(options: argparse.Namespace, name: str, entry: Entry) -> None:
    """Put an entry in the file and on the page; neither a check that ends meanwhile nor a kill loses the others."""
    folder = os.open(options.json.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    entries, partial = read(options.json) | {name: entry}, options.json.with_suffix(".partial")
    partial.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    partial.replace(options.json)
    options.out.write_text(page(entries), encoding="utf-8")
    os.close(folder)


def checked(name: str, options: argparse.Namespace, before: Entry) -> Iterator[Entry]:
    """Run a check: its entry, again after every part. The fuzz adds to its figures, seconds and revisions."""
    before = {} if options.fresh or name != "fuzz" else before
    began, revisions = time.monotonic(), [*before.get("revisions", [])]
    revisions += {revision()} - set(revisions)
    outcomes = CHECKS[name].run(options, before.get("figures", {}))
    for outcome in [outcomes] if isinstance(outcomes, Outcome) else outcomes:
        words = {word: getattr(options, word) for word in CHECKS[name].options}
        words |= {"calls": outcome.figures["reached"]} if name == "fuzz" else {}
        given = [f"--{word} {value}".removesuffix(".0") for word, value in words.items() if value]
        machine = dict(facts())
        machine["python"] = machine["python"].split()[0]
        yield {
            "command": " ".join(["python benches/reliability.py", name, *given]),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "seconds": round(time.monotonic() - began + before.get("seconds", 0), 1),
            "machine": {key: machine[key] for key in SHOWN} | {"cores": len(os.sched_getaffinity(0))},
            "revisions": revisions,
            "figures": outcome.figures,
            "failures": outcome.failures,
        }


def revision() -> str:
    """The commit that is checked out, and whether files differ from it; empty without git."""
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "python", "rust", "tests")
    return git("rev-parse", "--short=8", "HEAD").strip() + (" with changes" if changed else "")


def page(entries: Mapping[str, Entry]) -> str:
    """docs/reliability.md with these entries: the rows of its table, and the command and date of their sections."""
    known = {name: entries[name] for name in CHECKS if name in entries}
    machines = {where(entry["machine"]) for entry in known.values()}
    lines = [*([f"*{next(iter(machines))}.*", ""] if len(machines) == 1 else [])]
    lines += ["| check | figures | failures | took |", "|---|---|---:|---:|"]
    parts = {"checks": lines}
    for name, entry in known.items():
        title = CHECKS[name].title
        link = f"[{title}](#{title.lower().replace(' ', '-')})"
        cells = (link, figures(name, entry), len(entry["failures"]), duration(entry["seconds"]))
        lines.append(f"| {' | '.join(map(str, cells))} |")
        revisions = f"revision{'s' * (len(entry['revisions']) > 1)} {', '.join(entry['revisions'])}"
        machine = f"; {where(entry['machine'])}" if len(machines) > 1 else ""
        parts[name] = ["", f"    {entry['command']}", "", f"*{entry['date']}, {revisions}{machine}.*"]
        parts[name] += ["", *(f"- {what}" for what in entry["failures"])] if entry["failures"] else []
    return filled(PAGE.read_text(encoding="utf-8"), parts)


def where(machine: dict[str, Any]) -> str:
    versions = f"Python {machine['python']}, NumPy {machine['numpy']}, torch {machine['torch']}"
    return f"{machine['processor']}, {machine['cores']} of them used, {machine['simd']}, {versions}"


def figures(name: str, entry: Entry) -> str:
    """The figures of a check in words; there are none of one that could not begin."""
    return CHECKS[name].row(entry["figures"]) if entry["figures"] else "none"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # kills what the check has started
    sys.exit(main())
