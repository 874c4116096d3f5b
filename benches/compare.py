"""Two builds of the package against each other: is B slower than A, or does it use more memory?

    python benches/compare.py A B [GROUP ...] [--rounds 6] [--threads N] [--only TEXT] [--full]

A build is a folder that holds the package `isometry` with its extension (the `python/` of a checkout), or an
extension alone (`_core.abi3.so`), which is then combined with the Python files of this checkout. Both are copied
first, and both are measured by the bench of this checkout, so that an older build need not have the group itself.

Every round runs `benches/bench.py GROUP --alone` once for each build, in separate, alternating processes: A B, B A, A
B. A process is represented by the median of its samples, a build by the median of its processes. "A/A" is the spread
of A against itself: for all splits of its processes into halves the ratio of their medians, and of |ratio - 1| the 90
% quantile. A row is WORSE if B/A exceeds 1 by more than that and --beyond together; then the exit status is 1. The
minima, which are least affected by a busy machine, are shown too. Memory is judged by minima: what the operating
system adds in pages of 2 MB is not a property of a build.
"""

import argparse
import itertools
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.groups import NAMES

PYTHON = Path(__file__).resolve().parents[1] / "python"
BENCH = str(Path(__file__).resolve().with_name("bench.py"))
FEWEST = 4  # six splits into halves
NO_SUCH_ROW = 2  # an invalid argument
SPLITS, QUANTILE = 1000, 0.9
WORSE = "WORSE"
LIST = "{:60} {:>10} {:>10} {:>7} {:>6}  {:>10} {:>10} {:>7}  {}"

Key = tuple[str, str]  # group, row
Samples = dict[Key, list[list[float]]]  # for each process


#: One row: medians of both builds, their ratio, the spread of A, minima, and the verdict.
Verdict = tuple[float, float, float, float, float, float, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status: 1 if a row of B is slower, larger or wrong."""
    options = parsed(arguments)
    found: tuple[list[Any], list[Any]] = ([], [])
    with tempfile.TemporaryDirectory() as folder:
        sides = [Path(folder) / name for name in "ab"]
        for side, build in zip(sides, (options.a, options.b), strict=True):
            assemble(build, side)
            print(f"{side.name.upper()}: {build}", flush=True)
        for turn, group in itertools.product(range(options.rounds), options.groups):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                print(f"round {turn + 1}/{options.rounds} {group} {'AB'[which]}", file=sys.stderr, flush=True)
                found[which].append(run(sides[which], group, options))
    if not any(process["rows"] for process in found[1]):
        raise SystemExit(f"no row of {', '.join(options.groups)} has {options.only!r} in its name")
    if options.json:
        options.json.write_text(json.dumps({"a": found[0], "b": found[1]}), encoding="utf-8")
    bad = 0
    for quantity in QUANTITIES:
        a, b = (collected(processes, quantity.of) for processes in found)
        if a and b:
            bad += table(quantity, a, b, options.beyond / 100)
    for name, processes in zip("AB", found, strict=True):
        wrong = sorted({e["row"] for p in processes for e in p["rows"] if e["wrong"]})
        print("".join(f"\n{name} is wrong: {row}" for row in wrong), end="\n" if wrong else "")
        bad += len(wrong) if name == "B" else 0
    return 1 if bad else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", type=Path, metavar="A", help="the build to compare with: a folder or an extension")
    parser.add_argument("b", type=Path, metavar="B", help="the build in question")
    parser.add_argument(
        "groups",
        nargs="*",
        default=[name for name in NAMES if name != "gpu"],
        metavar="GROUP",
        help="groups (default: all but gpu)",
    )
    parser.add_argument("--rounds", type=int, default=6, metavar="K", help="processes of each build and group, >= 4")
    parser.add_argument("--threads", type=int, metavar="N", help="thread budget (default: the cores)")
    parser.add_argument("--only", metavar="TEXT", help="the rows alone that have TEXT in their name")
    parser.add_argument("--full", action="store_true", help="six times the samples of --quick in each process")
    parser.add_argument("--beyond", type=float, default=3.0, metavar="X", help="per cent that are let pass (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what every process found, samples included")
    options = parser.parse_args(arguments)
    if options.rounds < FEWEST:
        parser.error(f"--rounds: the spread of A against itself needs at least {FEWEST}")
    return options


# ---------------------------------------------------------------- the builds


def assemble(build: Path, folder: Path) -> None:
    """Copy a build into folder/isometry."""
    source, package = (build if build.is_dir() else PYTHON) / "isometry", folder / "isometry"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    if not build.is_dir():
        for extension in package.glob("_core*.so"):
            extension.unlink()
        shutil.copy(build, package / "_core.abi3.so")
    if not any(package.glob("_core*.so")):
        raise SystemExit(f"{build} holds no isometry/_core*.so")


def run(side: Path, group: str, options: argparse.Namespace) -> dict[str, Any]:
    """One process of a build: what `benches/bench.py GROUP` writes."""
    file = side / "found.json"
    command = [sys.executable, BENCH, group, "--alone", "--json", str(file)]
    command += [] if options.full else ["--quick"]
    command += ["--threads", str(options.threads)] if options.threads else []
    command += ["--only", options.only] if options.only else []
    environment = os.environ | {"PYTHONPATH": str(side)}
    done = subprocess.run(command, cwd=side, env=environment, capture_output=True, text=True, check=False)
    if options.only and done.returncode == NO_SUCH_ROW:
        return {"rows": []}
    if not file.exists():
        raise SystemExit(f"{side.name.upper()}, group {group}: {done.stderr.strip() or done.stdout.strip()}")
    found = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    return found


# ---------------------------------------------------------------- results


def times(entry: dict[str, Any]) -> list[float] | None:
    return entry["samples"][entry["ours"]] if "samples" in entry else None


def peaks(entry: dict[str, Any]) -> list[float] | None:
    """Bytes used in one call, or in a whole process of the group `memory`."""
    bytes_ = entry.get("peak_bytes", entry.get("bytes isometry"))
    return None if not bytes_ else [bytes_]


def slopes(entry: dict[str, Any]) -> list[float] | None:
    slope = entry.get("slope isometry")
    return None if slope is None else [slope]


class Quantity(NamedTuple):
    """A compared quantity; `of` reads it from an entry, and `center` combines those of all processes."""

    name: str
    unit: str
    factor: float
    of: Callable[[dict[str, Any]], list[float] | None]
    center: Callable[[Sequence[float]], float]
    least: float  # if both builds are below it they are not compared


QUANTITIES = (
    Quantity("time", "ms", 1e3, times, statistics.median, 0.0),
    Quantity("memory", "MB", 1e-6, peaks, min, 256e3),
    Quantity("growth of memory", "T B n", 1.0, slopes, min, 0.0),
)


def collected(processes: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], list[float] | None]) -> Samples:
    found: Samples = {}
    for process in processes:
        for entry in process["rows"]:
            samples = of(entry)
            if samples is not None:
                found.setdefault((entry["group"], entry["row"]), []).append(samples)
    return found


def table(quantity: Quantity, a: Samples, b: Samples, beyond: float) -> int:
    """Print the rows that both builds have; returns the number of those where B is worse."""
    # a quantity that one process alone has found has no spread
    both = [key for key in a if min(len(a[key]), len(b.get(key, ()))) > 1]
    found = {key: verdict(a[key], b[key], beyond, quantity.center) for key in both}
    found = {key: row for key, row in found.items() if max(row[:2]) >= quantity.least}
    if not found:
        return 0
    heads = (f"A {quantity.unit}", f"B {quantity.unit}", "B/A", "A/A", "least A", "least B", "B/A")
    print("\n" + LIST.format(quantity.name, *heads, "").rstrip())
    for key, (*_, ratio, noise, low, other, word) in found.items():
        one, two, least_a, least_b = (f"{x * quantity.factor:.4g}" for x in (*found[key][:2], low, other))
        columns = (one, two, f"{ratio:.3f}", f"{noise:.1%}", least_a, least_b, f"{other / low:.3f}", word)
        print(LIST.format(": ".join(key), *columns).rstrip())
    _, _, ratios, spreads, _, _, words = zip(*found.values(), strict=True)
    mean, worse = math.exp(statistics.fmean(map(math.log, ratios))), words.count(WORSE)
    blind = sum(noise > beyond for noise in spreads)
    print(f"{len(found)} rows, geometric mean of B/A {mean:.3f}; {worse} worse by more than {beyond:.1%} and A/A; "
          f"in {blind} A/A alone is more than {beyond:.1%}")  # fmt: skip
    return worse


def verdict(
    a: Sequence[Sequence[float]],
    b: Sequence[Sequence[float]],
    beyond: float,
    center: Callable[[Sequence[float]], float] = statistics.median,
) -> Verdict:
    """Judge a row by the samples of each process of A and B."""
    own, other = ([statistics.median(samples) for samples in side] for side in (a, b))
    one, two, noise = center(own), center(other), spread(own, center)
    ratio, allowed = two / one, beyond + noise
    word = WORSE if ratio > 1 + allowed else "better" if ratio < 1 - allowed else ""
    return one, two, ratio, noise, min(map(min, a)), min(map(min, b)), word


def spread(values: Sequence[float], center: Callable[[Sequence[float]], float] = statistics.median) -> float:
    """|ratio - 1| of the centers of two halves of the values, the 90 % quantile over all splits into halves."""
    ratios = sorted(abs(center(p) / center(q) - 1) for p, q in halves(values))
    return ratios[min(len(ratios) - 1, math.floor(QUANTILE * len(ratios)))]


def halves(values: Sequence[float]) -> Iterator[tuple[list[float], list[float]]]:
    """All splits into halves, or a thousand of them if there are more."""
    places, half = range(len(values)), len(values) // 2
    chosen: Iterator[tuple[int, ...]] = itertools.combinations(places, half)
    if math.comb(len(values), half) > SPLITS:
        rng = random.Random(0)
        chosen = (tuple(rng.sample(places, half)) for _ in range(SPLITS))
    for part in chosen:
        yield [values[i] for i in part], [values[i] for i in places if i not in part]


if __name__ == "__main__":
    sys.exit(main())
