"""Mutated files of one kind, read by the check `mutation`: python mutated.py KIND COUNT SEED.

KIND is a format of `tests/test_readers.py`, or `load_run` or `resume`: the folder of a run with one damaged file. Every
outcome must be a result or the documented error, which names the file. Prints a JSON line: files, errors, failures.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import damage
import isometry as iso
import test_readers
from isometry.cli import main as command

FOLDERS = ("load_run", "resume")
ROUND = {"load_run": 30, "resume": 2}  # damages of a file and a way, then those of the next file


def load_run(folder: Path) -> bool:
    """Whether the run is refused; an AssertionError if not with the documented error."""
    try:
        iso.load_run(folder)
    except (ValueError, RuntimeError) as error:
        assert str(folder) in str(error), repr(error)
        return True
    return False


def resume(folder: Path) -> bool:
    """The same of `isometry train --resume`: one line on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command(["train", "--resume", str(folder), "--iterations", "7"])
    lines = err.getvalue().splitlines()
    said = len(lines) == 1 and str(folder) in lines[0] and "ISOMETRY_TRACEBACK" not in lines[0]
    assert not lines if status == 0 else status in (1, 2) and said, f"status {status}: {lines}"
    return status != 0


def folders(kind: str, whole: Path, folder: Path, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Damages the folder again and again, without an end; gives the file and the way."""
    for how in itertools.cycle((damage.cuts, damage.flips, damage.renames)):
        for name in damage.damaged(whole, folder, rng, how, ROUND[kind] if how is not damage.renames else 200):
            yield name, how.__name__


def explore(kind: str, count: int, rng: np.random.Generator, parent: Path) -> dict[str, Any]:
    call: Callable[[Path], bool] = {"load_run": load_run, "resume": resume}[kind]
    whole, errors, failures = damage.trained(parent / "whole"), 0, Counter[str]()
    for name, how in itertools.islice(folders(kind, whole, parent / "run", rng), count):
        try:
            errors += call(parent / "run")
        except Exception as error:
            failures[f"{name}, {how}: {error!r}".replace(str(parent), "")] += 1
    return {"files": count, "errors": errors, "failures": failures}


def read(kind: str, count: int, rng: np.random.Generator, parent: Path) -> dict[str, Any]:
    failures = []
    try:
        test_readers.explore(kind, count, parent / "file", rng)
    except Exception as error:
        failures = [f"{error!r}".replace(str(parent), "")]
    return {"files": count, "failures": dict.fromkeys(failures, 1)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=[*test_readers.GOOD, *FOLDERS])
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as parent:
        found = (explore if options.kind in FOLDERS else read)(options.kind, options.count, rng, Path(parent))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
