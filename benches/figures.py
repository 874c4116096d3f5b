"""Draws the README's pictures and writes its tables from the measured files of docs/figures; run by `make figures`.

    python benches/figures.py

docs/figures/speeds.png      ratios of `benches/bench.py`, from speeds.json
docs/figures/copying.png     curves of the copying problem, from copying-MODEL.csv
README.md, speed.md          the lines between `<!-- NAME -->` and `<!-- /NAME -->`, from beside, others and speeds.json
benches/measurements.md      the same, from cores.json

`benches/measure.py` makes the measured files.
"""

import csv
import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

from isometry.cli import plots
from measure import OTHERS, counts, fastest
from reproduction.pictures import save

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures"
README, SPEED, MEASUREMENTS = ROOT / "README.md", ROOT / "docs/speed.md", ROOT / "benches/measurements.md"
RUNS = {"scornn": "ScoRNN", "lstm": "LSTM"}
HEAD = "times as fast as the fastest torch peer measured"
OURS, PEER, INK = "#0072b2", "#999999", "0.25"
TITLES = {
    "recurrence": "recurrent layer, against loops over W and torch.nn.RNN",
    "gru": "GRU layer",
    "goru": "GRU with an orthogonal matrix",
    "rum": "RUM",
    "householder": "matrix of m reflections of R^n",
    "apply": "m reflections of R^n applied to B rows",
    "cayley": "matrix of a Cayley transform",
    "batches": "batch of small Cayley transforms",
    "kronecker": "Kronecker product of 9 factors 2 x 2",
    "rotation": "rotations of one direction to another",
    "bounded_svd": "matrix of bounded singular values",
    "exponential": "exponential of a skew matrix",
    "fourier": "diagonals, reflections and Fourier transforms",
    "mesh": "mesh of 2 x 2 blocks, n 512",
    "delta": "delta rule, 16 heads of 128 x 128",
    "small": "one small call, its operator built anew",
}
SIDES = {
    "isometry cayley": '**Isometry**, `"cayley"`',
    "isometry householder": '**Isometry**, `"householder"`',
    "isometry matrix_exp": '**Isometry**, `"matrix_exp"`',
    "torch cayley": 'torch, `"cayley"`',
    "torch householder": 'torch, `"householder"`',
    "torch matrix_exp": 'torch, `"matrix_exp"`',
    "geotorch cayley": 'geotorch, `"cayley"`',
    "geotorch expm": 'geotorch, `"expm"`',
    "isometry.Cayley": "operator `Cayley`, layer `ScoRNN`",
    "isometry.Householder": "operator `Householder`, layer `ORNN`",
}


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIGURES / name).read_text(encoding="utf-8"))
    return found


def columns(path: Path) -> dict[str, list[float]]:
    """The columns of a metrics.csv."""
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    return {name: [float(row[k]) for row in rows] for k, name in enumerate(names)}


def ratios(group: str, found: dict[str, Any]) -> list[tuple[str, float]]:
    """(row, ratio to the fastest of its peers) of a group, for the rows that count."""
    own = [row for row in found["rows"] if row["group"] == group]
    rows = [row for row in own if counts(row, found["machine"])]
    return [(row["row"], fastest(row)[1]) for row in rows]


def draw_speeds(path: Path, found: dict[str, Any]) -> None:
    """Ratios as bars from 1 on a logarithmic axis, by group."""
    groups = {group: pairs for group in TITLES if (pairs := ratios(group, found))}
    lines = sum(1 + len(pairs) for pairs in groups.values())
    figure, ((axis,),) = plots.sheet(0.7 + 0.2 * lines)
    ticks: list[tuple[int, str]] = []
    heads: dict[str, Any] = {"fontsize": 8.5, "weight": "bold", "color": INK}
    y = 0
    for group, pairs in groups.items():
        axis.text(-0.55, y, TITLES[group], transform=axis.get_yaxis_transform(), va="center", **heads)
        y += 1
        for name, ratio in pairs:
            axis.barh(y, ratio - 1, left=1, height=0.72, color=OURS if ratio >= 1 else PEER)
            axis.text(max(ratio, 1) * 1.02, y, f"{ratio:.1f}x", va="center", fontsize=8, color=INK)
            ticks.append((y, short(group, name)))
            y += 1
    axis.set_xscale("log")
    axis.set_xlim(min(1.0, *(r for pairs in groups.values() for _, r in pairs)), None)
    axis.set_ylim(y - 0.4, -0.7)
    axis.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=8)
    axis.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    axis.minorticks_off()
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    machine = found["machine"]
    said = f"{machine['processor']}, {threads(machine)}, torch {machine['torch']}"
    axis.set_xlabel(f"{HEAD}\nforward and backward, float32; {said}", fontsize=8, loc="right")
    save(figure, path)


def short(group: str, name: str) -> str:
    """The row's name without what the title of its group says, its sizes by name."""
    known = (
        r"GRU |GORU |RUM |kronecker |rotation |bounded svd |exponential |fourier |mesh |"
        r"householder (matrix|apply) |small |cayley (batch )?"
    )
    name = re.sub(f"^({known})+", "", name) if group != "small" else name.removeprefix("small ").replace("cayley ", "")
    if group in ("recurrence", "delta"):
        return re.sub(" m0| H16 K128 V128", "", name)
    if group == "small" and name.isdecimal():
        return f"Cayley, n {name}"
    if group == "cayley":
        return f"n {name}"
    if group == "batches":
        return "{} of n {}".format(*name.split("x"))
    name = name.replace("householder ", "Householder, ")
    return re.sub(r"(\d+)/(\d+)(/B(\d+))?", lambda m: f"n {m[1]}, m {m[2]}" + (f", B {m[4]}" if m[4] else ""), name)


def draw_copying(path: Path) -> None:
    """The loss of the runs of the copying problem."""
    runs = {title: columns(FIGURES / f"copying-{model}.csv") for model, title in RUNS.items()}
    plots.curves(path, runs, "Copying problem, delay 1,000", ["loss"])


def speeds_table(found: dict[str, Any]) -> list[str]:
    """A line per group: the range of the ratios."""
    lines = [f"| | {HEAD} | `python benches/bench.py` |", "|---|---|---|"]
    for group, title in TITLES.items():
        values = sorted(ratio for _, ratio in ratios(group, found))
        if values:
            lines.append(f"| {title} | {span(values)} | `{group}` |")
    return [*lines, "", f"*{where(found['machine'])}*"]


def span(values: list[float]) -> str:
    """The range of some ratios."""
    low, high = (f"{value:.1f}" for value in (values[0], values[-1]))
    return low if low == high else f"{low} to {high}"


def beside_table(found: dict[str, Any]) -> list[str]:
    """Milliseconds of every side, the fastest of a column in bold."""
    sides = {name: found["milliseconds"][name] for name in SIDES}
    names = list(next(iter(sides.values())))
    best = {column: min(row[column] for row in sides.values()) for column in names}
    lines = [f"| ms per forward and backward | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for name, row in sides.items():
        cells = (f"**{figure_of(row[c])}**" if row[c] == best[c] else figure_of(row[c]) for c in names)
        lines.append(f"| {SIDES[name]} | {' | '.join(cells)} |")
    return [*lines, "", f"*{where(found['machine'])}*"]


def others_table(found: dict[str, Any]) -> list[str]:
    """Milliseconds of ours and of other packages, of torch a step by its cell."""
    lines = ["| ms | Isometry | torch | ONNX Runtime | SciPy |", "|---|---|---|---|---|"]
    for row in found["rows"]:
        of = {side: middle for side, (_, middle, _) in row["quartiles_ms"].items()}
        peers = (of.get("torch's cell", of.get("torch")), of.get("onnxruntime"), of.get("scipy Rotation"))
        cells = [of[row["ours"]], *peers]
        least = min(filter(None, cells))
        said = ("" if t is None else f"**{figure_of(t)}**" if t == least else figure_of(t) for t in cells)
        lines.append(f"| {OTHERS[row['group'], row['row']]} | {' | '.join(said)} |")
    return [*lines, "", f"*{where(found['machine'])}*"]


def cores_table(found: dict[str, Any]) -> list[str]:
    """The longest row of each group, and every row of `one`: medians on one thread and on two, the
    serial share and the prediction from it; then the range of shares in the group.
    """
    lines = ["| group | longest row | t1 | t2 | 2 - t1 / t2 | predicted for 16 cores | shares in the group |"]
    lines.append("|---|---|---|---|---|---|---|")
    for group, rows in groupby(found["rows"], lambda row: row["group"]):
        own = list(rows)
        shares = [min(max(row["serial"], 0.0), 1.0) for row in own]
        whole = f"{min(shares):.2f} to {max(shares):.2f} in {len(own)} rows" if len(own) > 1 else ""
        longest = max(own, key=lambda row: row["quartiles_ms"]["1"][1])
        for row in own if group == "one" else [longest]:
            one, two = (figure_of(row["quartiles_ms"][count][1]) for count in ("1", "2"))
            figures = f"{one} | {two} | {row['serial']:.2f} | {row['predicted']:.1f} times"
            lines.append(f"| {group} | {row['row']} | {figures} | {'' if group == 'one' else whole} |")
    return [*lines, "", f"*{where(found['machine'])}*"]


def figure_of(milliseconds: float) -> str:
    """Two digits, or all of them before the point."""
    digits = 3 if milliseconds < 0.1 else 2 if milliseconds < 1 else 1 if milliseconds < 10 else 0
    return f"{milliseconds:.{digits}f}"


def threads(machine: dict[str, Any]) -> str:
    return "one thread" if machine["threads"] == 1 else f"{machine['threads']} threads"


def where(machine: dict[str, Any]) -> str:
    """The machine and the versions of a measurement."""
    versions = [
        f"{name} {machine[name].partition('+')[0]}" for name in ("isometry", "torch", "geotorch") if machine.get(name)
    ]
    return f"{machine['processor']}, {threads(machine)}, {', '.join(versions)}, {machine['time'][:10]}"


def filled(text: str, tables: dict[str, list[str]]) -> str:
    """The text with each table between its two marks."""
    for name, lines in tables.items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        body = "\n".join(lines) + "\n"
        text, count = block.subn(lambda found, body=body: found[1] + body + found[2], text)
        if count != 1:
            raise ValueError(f"a page must have one block <!-- {name} --> ... <!-- /{name} -->, not {count}")
    return text


def tables() -> dict[Path, dict[str, list[str]]]:
    """The tables of the pages, by their marks."""
    weights, others = beside_table(read("beside.json")), others_table(read("others.json"))
    own = {README: {"beside": weights, "others": others}, SPEED: {"speeds": speeds_table(read("speeds.json"))}}
    measured = (FIGURES / "cores.json").exists()
    return own | ({MEASUREMENTS: {"cores": cores_table(read("cores.json"))}} if measured else {})


def main() -> None:
    draw_speeds(FIGURES / "speeds.png", read("speeds.json"))
    draw_copying(FIGURES / "copying.png")
    for page, own in tables().items():
        page.write_text(filled(page.read_text(encoding="utf-8"), own), encoding="utf-8")


if __name__ == "__main__":
    main()
