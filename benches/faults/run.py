"""Runs the tests against one fault after another.

    python benches/faults run RESULTS [--all] [--only N ...]
    python benches/faults report BEFORE [AFTER]

First come the tests that name the file of the fault most often, then the others of its area, up to the first that
fails, for at most two minutes of two processors. `--all` runs all tests for 30 drawn faults, without a limit; those
that the tests of their area notice, of which the results tell, need no second run. A row is added to the file of
results after each fault, and a run that was ended continues there. The report has a row for each area, the faults that
nothing noticed, and of two files those that only the first noticed; its exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path

from faults import scratch
from faults.plant import PLANTED, Fault, planted, read

SECONDS, ALL, SEED = 120, 30, 0
#: Area -> folders and files of its tests in Python.
TESTS = {
    "kernels": ("tests/laws", "tests/objects"),
    "core": ("tests/laws", "tests/objects"),
    "seam": ("tests/test_*.py", "tests/laws", "tests/process"),
    "NumPy": ("tests/test_*.py", "tests/objects", "tests/laws"),
    "torch": ("tests/torch",),
}
#: Tests of Rust that measure time, or how threads share the cores.
TIMED = ("threads::", "contention::", "idles", "a_child_forked")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)|^test (\S+) \.\.\. FAILED", re.MULTILINE)


def built(root: Path) -> str:
    """The extension and the Rust tests of the core with all faults of Rust; the path of the tests."""
    env = scratch.environment()
    cargo = lambda *words: subprocess.run(["cargo", *words], cwd=root, env=env, check=True, stdout=-1, text=True).stdout
    cargo("build", *scratch.EXTENSION)
    shutil.copy(scratch.PLACE / "target/release/lib_core.so", root / "python/isometry/_core.abi3.so")
    made = cargo("test", *scratch.EXTENSION[:2], *"-p isometry-core --lib --no-run --message-format json".split())  # noqa: SIM905
    return next(found for line in made.splitlines() if (found := json.loads(line).get("executable")))


def files(fault: Fault, root: Path) -> list[str]:
    """The files of tests of the area, those first that name the file of the fault most often."""
    path = Path(fault.file)
    stem = (path.parent.name if path.stem in ("mod", "lib", "__init__") else path.stem).strip("_")
    found = [p for pattern in TESTS[fault.area] for p in sorted(root.glob(pattern))]
    found = [p for top in found for p in (sorted(top.rglob("test_*.py")) if top.is_dir() else [top])]
    return [str(p) for p in sorted(found, key=lambda p: -((stem in p.stem) * 1000 + p.read_text().count(stem)))]


def commands(fault: Fault, root: Path, binary: str, everything: bool) -> Iterator[list[str]]:
    skipped = ["--test-threads", "2", *(word for name in TIMED for word in ("--skip", name))]
    if fault.area in ("kernels", "core"):
        parts = Path(fault.file).relative_to(f"rust/{fault.area}/src").with_suffix("").parts
        yield [binary, *skipped, parts[0]]
        yield [binary, *skipped]
    options = ["-q", "-x", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider", "-m"]
    pytest = [sys.executable, "-m", "pytest", *options, "not alone and not long and not extra"]
    found = ["tests"] if everything else files(fault, root)
    yield from ([*pytest, *part] for part in (found[:6], found[6:]) if part)


def tried(fault: Fault, root: Path, binary: str, everything: bool) -> dict[str, object]:
    """What noticed the fault, and after how long."""
    path, used, by = root / fault.file, 0.0, None
    original = path.read_text(encoding="utf-8")
    text = original if fault.area in PLANTED else fault.into(original)
    if text is None:
        return {"by": None, "gone": True}
    try:
        if text != original:
            path.write_text(text, encoding="utf-8")
        for command in commands(fault, root, binary, everything):
            by, used = noticed(command, root, fault.number, used, inf if everything else SECONDS)
            if by or (used > SECONDS and not everything):
                break
    finally:
        if text != original:
            path.write_text(original, encoding="utf-8")
    return {"by": by, "seconds": round(used)}


def processors(session: int) -> float:
    """Seconds of processor time that the programs of a session have used."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = path.read_text().rpartition(")")[2].split()
            found += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return found / 100


def noticed(command: list[str], root: Path, number: int, used: float, limit: float) -> tuple[str | None, float]:
    """The first test that fails, or how the program ended, None if all pass or at the limit; and the time used."""
    path, env, total = root / "output.txt", scratch.environment(number), used
    with path.open("w") as file:
        run = subprocess.Popen(command, cwd=root, env=env, stdout=file, stderr=file, start_new_session=True)
    while (ended := run.poll()) is None and total < limit and not FAILED.search(path.read_text(errors="replace")):
        time.sleep(0.3)
        total = max(total, used + processors(run.pid) / 2)
    subprocess.run(["pkill", "-KILL", "-s", str(run.pid)], check=False)
    run.wait()
    found = FAILED.search(path.read_text(errors="replace"))
    name = next(filter(None, found.groups())) if found else f"exit status {ended}"
    return name if found or ended not in (None, 0, 5) else None, total


def rows(path: Path) -> dict[tuple[int, bool], dict[str, object]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {(row["number"], row["all"]): row for row in map(json.loads, lines)}


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", type=int, nargs="*")
    options = parser.parse_args(words)
    faults = read()
    chosen = random.Random(SEED).sample(faults, ALL) if options.all else faults
    chosen = [fault for fault in chosen if not options.only or fault.number in options.only]
    texts, gone = planted(faults)
    root = scratch.made(texts)
    binary = built(root)
    for fault in chosen:
        known = rows(options.results)
        if (fault.number, options.all) in known:
            continue
        found = {"by": None, "gone": True} if fault.number in gone else known.get((fault.number, False), {})
        found = found if found.get("by") else tried(fault, root, binary, options.all)
        row = {"number": fault.number, "all": options.all, **found}
        with options.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(fault.area, fault.kind, fault.file, row, flush=True)


def report(words: list[str]) -> int:
    before, *after = [rows(Path(word)) for word in words]
    faults = {fault.number: fault for fault in read()}
    for name, found in zip(("before", "after"), (before, *after), strict=False):
        every, seen = Counter(), Counter()
        for (number, everything), row in found.items():
            fault = faults[number]
            every[fault.area, everything] += 1
            seen[fault.area, everything] += row["by"] is not None
            if row["by"] is None:
                print(f"{name}: nothing noticed {number}, {fault.kind}, {fault.file}: {fault.old.strip()}")
        for key, count in sorted(every.items()):
            print(f"{name}: {key[0]}, {'all tests' if key[1] else 'its tests'}: {seen[key]} of {count} noticed")
    lost = [
        key for later in after for key, row in before.items() if row["by"] and later.get(key, {}).get("by", "") is None
    ]
    print(*[f"noticed before alone: {number}" for number, _ in lost], sep="\n")
    return bool(lost)
