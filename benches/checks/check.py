"""What the checks of benches/reliability.py share: their form, and processes whose crash or hang is an outcome."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests", "tests/support", "tests/children")
SIZES = ("moments", "minutes", "seconds", "files", "seed")  # of tests/soak
HOURS, MINUTES = 9, 60
Figures = dict[str, Any]


@dataclass
class Outcome:
    """The figures of a check, and a line for everything that went wrong."""

    figures: Figures = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Check:
    """A check, by the title of its section in docs/reliability.md, which says what it does. `run` gets the options and
    the figures of the last time, from which only the fuzz goes on, and gives an outcome, or one after every part that
    may be kept; `row` says the figures in the words of the page's table; `options` are those that decide them.
    """

    title: str
    run: Callable[[argparse.Namespace, Figures], Outcome | Iterator[Outcome]]
    row: Callable[[Figures], str]
    options: tuple[str, ...] = ()


@dataclass
class Ended:
    """How a process has ended; `failure` is empty for status 0."""

    out: str
    err: str
    failure: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The complete lines of JSON that it has printed."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{") and line.endswith("}")]


def run(command: Sequence[object], seconds: float, **variables: str) -> Ended:
    """Run a command in a session of its own, which imports from tests/ too; after the time limit it and its children
    are killed.
    """
    paths = [*(str(ROOT / folder) for folder in TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **variables}
    words, pipe = [str(word) for word in command], subprocess.PIPE
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=seconds)
        failure = told(process.returncode, err)
    except subprocess.TimeoutExpired:
        kill(process)
        out, err = process.communicate()
        failure = f"no end within {seconds:.0f} s"
    finally:
        kill(process)
    return Ended(out, err, failure)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill what still runs of a process and its children with SIGKILL."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def told(status: int, err: str) -> str:
    """What is wrong with this exit status, in a line; empty for 0."""
    if status == 0:
        return ""
    said = (err.strip().splitlines() or [""])[-1]
    name = f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    return f"{name}: {said}" if said else name


def tests(*words: object, hours: float = HOURS, **variables: str) -> tuple[int, list[str]]:
    """Run pytest with these words: how many tests passed, and the names of those that did not."""
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *words]
    ended = run(command, 3600 * hours, PYTHONDONTWRITEBYTECODE="1", **variables)
    *others, last = ended.out.strip().splitlines() or [""]
    failed = [line for line in others if line.startswith(("FAILED", "ERROR"))]
    words_of_last = last.replace(",", "").split()
    passed = int(words_of_last[words_of_last.index("passed") - 1]) if "passed" in words_of_last else 0
    return passed, failed or ([f"pytest: {ended.failure}: {last}"] if ended.failure else [])


def soak(*files: str) -> Callable[[argparse.Namespace, Figures], Outcome]:
    """The check that runs files of tests, those of tests/soak at the sizes of the options; it adds what they count."""

    def checked(options: argparse.Namespace, _: Figures) -> Outcome:
        given = {name: getattr(options, name) for name in SIZES} | {"minutes": options.minutes or MINUTES}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "figures"
            file.touch()
            sizes = {"ISOMETRY_SOAK": json.dumps(given), "ISOMETRY_FIGURES": str(file)}
            passed, failed = tests(*files, "-m", "", **sizes)
            lines = [json.loads(line) for line in file.read_text().splitlines()]
        figures: Figures = {"tests": passed - len(lines)}  # that count nothing
        for line in lines:
            for name, value in line.items():
                figures[name] = figures.get(name, {}) | value if isinstance(value, dict) else value
        return Outcome(figures, failed)

    return checked
