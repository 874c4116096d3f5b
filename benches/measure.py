"""Measures what the README and docs/speed.md show, on an idle machine, into docs/figures; run by `make measurements`.

    python benches/measure.py [speeds] [beside] [others] [copying] [cores] [--threads N] [--groups NAME,...]

speeds     `benches/bench.py` by groups: docs/figures/speeds.json, medians and quartiles of every row
beside     `benches/beside.py`, orthogonal weights of Isometry, torch and geotorch: docs/figures/beside.json
others     a few rows of it beside SciPy, torch's layers and ONNX Runtime, on one thread: docs/figures/others.json
copying    `isometry train copying` of each model: docs/figures/copying-MODEL.csv, its metrics.csv
cores      `benches/bench.py --cores --quick`, one thread and two in turns: docs/figures/cores.json

Without names it measures all of them; with --groups the rows of other groups stay as they are. `make figures` draws the
pictures and writes their tables from these files.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.groups import SHOWN
from harness.row import LIMIT

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures"
GROUPS = tuple(SHOWN)
#: Rows of a group, with their titles in the README.
OTHERS = {
    ("numpy", "rotations of 200000 vectors, exponential"): "200,000 vectors, each with its own rotation",
    ("engines", "GRU n128 B1 T200"): "GRU of 128 units, 200 steps",
    ("engines", "GRU n128 B32 T200"): "32 of these sequences",
    ("engines", "GRU n128 B1 one step"): "one step",
    ("within", "GRU packed T100 B32 n128"): "training, 32 packed sequences of 10 to 100 steps",
    ("engines", "LSTM n128 B1 T200"): "LSTM of 128 units, 200 steps",
    ("engines", "LSTM n128 B32 T200"): "32 of these sequences",
    ("engines", "LSTM n128 B1 one step"): "one step",
    ("within", "LSTM packed T100 B32 n128"): "training, 32 packed sequences of 10 to 100 steps",
}
MODELS = ("scornn", "lstm")
RATES = ("torch.mm", LIMIT)  # measured with every row for its shares; no peers
# of a row; its largest spread, and the largest share of the machine that others use
TRIES, STEADY, QUIET = 3, 1.3, 0.05
TRAINING = ("--length", "1000", "--iterations", "1000", "--log-every", "10", "--seed", "0")


def python(*arguments: str) -> None:
    """One command of this Python."""
    subprocess.run([sys.executable, *arguments], check=True)


def speeds(options: argparse.Namespace, folder: Path) -> None:
    """Every row of the bench, a disturbed one again: the steadiest of a few tries stands."""
    file, rows, machine = FIGURES / "speeds.json", {}, {}
    if options.groups != GROUPS:
        kept = json.loads(file.read_text())
        if kept["machine"]["threads"] != options.threads:
            raise SystemExit(f"{file} holds rows of {kept['machine']['threads']} threads, not {options.threads}")
        rows = {group: [row for row in kept["rows"] if row["group"] == group] for group in GROUPS}
    for group in options.groups:
        machine, rows[group] = bench(group, "", options.threads, folder)
        for k, row in enumerate(rows[group]):
            tries = [row]
            while len(tries) < TRIES and not counts(tries[-1], machine):
                found = bench(group, row["row"], options.threads, folder)[1]
                tries += [other for other in found if other["row"] == row["row"]]
            rows[group][k] = min(tries, key=lambda one: (not counts(one, machine), one["spread"]))
    everything = [row for group in GROUPS for row in rows[group]]
    write(file, {"machine": machine, "rows": everything})
    disturbed = [row["row"] for row in everything if not counts(row, machine)]
    print(f"\ndisturbed rows, which no picture shows: {', '.join(disturbed) or 'none'}")


def bench(group: str, only: str, threads: int, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The machine and the rows of a group, run in a process of its own."""
    file = folder / f"{group}.json"
    before = busy()
    python(str(ROOT / "benches/bench.py"), group, "--only", only, "--threads", str(threads), "--json", str(file))
    others = others_since(before)
    found = json.loads(file.read_text())
    return found["machine"], [summary(row) | {"others": others} for row in found["rows"] if "samples" in row]


def counts(row: dict[str, Any], machine: dict[str, Any]) -> bool:
    """Whether nothing disturbed a row: its samples agree and, for several threads, the cores were free.

    A barrier waits for a thread that has lost its core, and torch's threads spin meanwhile: on a busy machine the ratio
    itself is wrong.
    """
    return bool(row["spread"] <= STEADY and (machine["threads"] == 1 or row["others"] <= QUIET))


def busy() -> tuple[float, float, float]:
    """Seconds that all cores have been busy, that our children have been, and that have passed on all cores."""
    user, nice, system, idle, wait, *rest = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    ticks, own = os.sysconf("SC_CLK_TCK"), os.times()
    working = user + nice + system + sum(rest)
    return working / ticks, own.children_user + own.children_system, (working + idle + wait) / ticks


def others_since(before: tuple[float, float, float]) -> float:
    """The share of the machine that other processes have used since then."""
    working, own, passed = (now - then for now, then in zip(busy(), before, strict=True))
    return rounded(max(0.0, working - own) / max(passed, 1e-9))


def summary(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its samples: the quartiles of every side in milliseconds, and their spread.

    The spread is the larger ratio of the third to the first quartile, of our side and the fastest peer.
    """
    sides = {name: [1e3 * t for t in statistics.quantiles(times, n=4)] for name, times in row["samples"].items()}
    kept = {key: row[key] for key in ("group", "row", "plan", "ours", "share", "limit")}
    bars = [{key: bar[key] for key in ("against", "peer", "ratio")} for bar in row["bars"]]
    found = kept | {"bars": bars, "quartiles_ms": sides}
    spread = max(sides[side][2] / sides[side][0] for side in (row["ours"], fastest(found)[0]))
    return rounded(found | {"spread": spread})


def fastest(row: dict[str, Any]) -> tuple[str, float]:
    """The fastest of all peers of a row, by medians, and how many times as fast our side is."""
    medians = {side: middle for side, (_, middle, _) in row["quartiles_ms"].items() if side not in RATES}
    own = medians.pop(row["ours"])
    peer = min(medians, key=lambda side: medians[side])
    return peer, medians[peer] / own


def rounded(value: Any) -> Any:
    """Numbers to four digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def beside(options: argparse.Namespace, folder: Path) -> None:
    """The comparison with torch's parametrisation and geotorch."""
    file = folder / "beside.json"
    python(str(ROOT / "benches/beside.py"), "--threads", str(options.threads), "--json", str(file))
    write(FIGURES / "beside.json", rounded(json.loads(file.read_text())))


def others(_: argparse.Namespace, folder: Path) -> None:
    """The rows of `OTHERS`."""
    rows, machine = [], {}
    for group, name in OTHERS:
        machine, found = bench(group, name, 1, folder)
        rows += [row for row in found if row["row"] == name]
    write(FIGURES / "others.json", {"machine": machine, "rows": rows})


def copying(options: argparse.Namespace, folder: Path) -> None:
    """The runs of the curves."""
    for model in MODELS:
        out = folder / model
        given = (*TRAINING, "--threads", str(options.threads), "--out", str(out))
        python("-m", "isometry", "train", "copying", "--model", model, *given)
        shutil.copyfile(out / "metrics.csv", FIGURES / f"copying-{model}.csv")


def cores(_: argparse.Namespace, folder: Path) -> None:
    """The serial shares of all rows."""
    file, before = folder / "cores.json", busy()
    python(str(ROOT / "benches/bench.py"), "--cores", "--quick", "--threads", "2", "--json", str(file))
    found = json.loads(file.read_text())
    rows = []
    for row in found["rows"]:
        if "samples" in row:
            quartiles = {count: [1e3 * t for t in statistics.quantiles(s, n=4)] for count, s in row["samples"].items()}
            kept = {key: row[key] for key in ("group", "row", "serial", "predicted")}
            rows.append(rounded(kept | {"quartiles_ms": quartiles}))
    write(FIGURES / "cores.json", {"machine": found["machine"] | {"others": others_since(before)}, "rows": rows})


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


MEASUREMENTS = {"speeds": speeds, "beside": beside, "others": others, "copying": copying, "cores": cores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=", ".join(MEASUREMENTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--groups", default=GROUPS, type=lambda text: tuple(text.split(",")), help="of the bench")
    options = parser.parse_args()
    if unknown := set(options.what) - set(MEASUREMENTS):
        parser.error(f"no measurement {', '.join(sorted(unknown))}; there are {', '.join(MEASUREMENTS)}")
    if unknown := set(options.groups) - set(GROUPS):
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    FIGURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.what or MEASUREMENTS:
            MEASUREMENTS[name](options, Path(folder))


if __name__ == "__main__":
    main()
