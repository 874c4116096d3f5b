"""python benches/study report: what the results say, in RESULTS.md and in the guide of docs/choosing.md.

The score of a layer on a task is the mean over its seeds; a share of 0 is chance, a share of 1 the best of all layers.
For a kind of task the guide ranks layers, each with one activation, by their mean share over its tasks; equal ones by
that over all tasks. Beside a mean stands the standard deviation of the means of single seeds. To test the guide, each
task in turn is left out: its kind's first pick, made from the kind's other tasks, or from all others where there are
none, is compared with the best of all layers on it and with torch's GRU and LSTM. So is, on the tasks that no guide is
made from, the first pick of their kind.
"""

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .layers import ACTIVATIONS
from .results import QUARTER, RESULTS, UPDATES, Results, Table, among, means, of_seeds, read, shares
from .tasks import TASKS, UNSEEN
from .times import TIMES

PICKS = 3
NEAR, NEARER = 0.05, 0.10  # of a score, and of the way from chance to the best
TORCH = ("torch GRU", "torch LSTM")
TABLES = Path(__file__).with_name("RESULTS.md")
GUIDE = Path(__file__).parents[2] / "docs" / "choosing.md"
BEGIN, END = "<!-- python benches/study report -->\n", "<!-- end -->\n"


class Tried(NamedTuple):
    """A task, the first pick made without it, the best of all layers on it, and their scores."""

    task: str
    pick: str
    score: float
    best: str
    most: float
    near: bool
    below_torch: bool


def of_kind(share: Table, kind: str) -> list[str]:
    return [task for task in share if TASKS[task].kind == kind]


def ranked(share: Table, kind: str, without: Collection[str] = ()) -> list[tuple[str, float]]:
    """The layers with their mean share for a kind, the best first."""
    every = [task for task in share if task not in without]
    own = [task for task in of_kind(share, kind) if task not in without] or every
    mean = {name: [statistics.fmean(share[t][name] for t in of) for of in (own, every)] for name in share[every[0]]}
    return [(name, mean[name][0]) for name in sorted(mean, key=lambda name: (*(-m for m in mean[name]), name))]


def picks(share: Table, kind: str) -> list[tuple[str, float]]:
    """The best layers of a kind, each with its better activation."""
    found: dict[str, tuple[str, float]] = {}
    for name, mean in ranked(share, kind):
        found.setdefault(name.split(",")[0], (name, mean))
    return list(found.values())[:PICKS]


def first(share: Table, kind: str, without: Collection[str] = ()) -> str:
    return ranked(share, kind, without)[0][0]


def tried(task: str, pick: str, scores: Table, share: Table) -> Tried:
    of_layers = scores[task]
    best = max(of_layers, key=lambda name: of_layers[name])
    near = of_layers[pick] >= of_layers[best] - NEAR or share[task][pick] >= 1 - NEARER
    below = of_layers[pick] < max(of_layers[name] for name in TORCH)
    return Tried(task, pick, of_layers[pick], best, of_layers[best], near, below)


def left_out(scores: Table, share: Table) -> list[Tried]:
    return [tried(task, first(share, TASKS[task].kind, (task,)), scores, share) for task in share]


def unseen(scores: Table, share: Table, results: Results) -> list[Tried]:
    """The first picks on the tasks that `share` does not have, of which every layer was trained on."""
    layers = next(iter(share.values())).keys()
    whole = [task for task in scores if layers <= scores[task].keys()]
    shares_there = shares(scores, results)
    return [tried(task, first(share, UNSEEN[task].kind), scores, shares_there) for task in whole]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: bool = False) -> str:
    lines = [head, ["---", *["---" if left else "---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def code(name: str) -> str:
    """`ScoRNN, oplu` as the guide writes it."""
    layer, _, activation = name.replace("torch ", "torch.nn.").partition(", ")
    return f"`{layer}` {activation}".rstrip()


def kinds(share: Table, single: Sequence[Table]) -> str:
    """The table of the guide."""
    rows = []
    for kind in dict.fromkeys(TASKS[task].kind for task in share):
        own, all_of = of_kind(share, kind), dict(ranked(share, kind))

        def said(name: str, own: Sequence[str] = own, all_of: Mapping[str, float] = all_of) -> str:
            seeds = [statistics.fmean(of[task][name] for task in own) for of in single if of.keys() >= set(own)]
            return f"{all_of[name]:.2f}" + (f" ± {statistics.stdev(seeds):.2f}" if len(seeds) > 1 else "")

        best, *others = [name for name, _ in picks(share, kind)]
        beside = [f"{code(name)} {said(name)}" for name in others]
        ties = {name.split(",")[0] for name, mean in all_of.items() if f"{mean:.2f}" == f"{all_of[best]:.2f}"}
        if more := len(ties) - 1 - sum(name.split(",")[0] in ties for name in others):
            beside.append(f"and {more} more at {all_of[best]:.2f}")
        torch = [f"{name.split()[1]} {said(name)}" for name in TORCH]
        about = f"{kind} ({', '.join(own)})"
        rows.append([about, f"{code(best)} **{said(best)}**", *map("<br>".join, (beside, torch))])
    return table(["you have (tasks)", "take", "then", "`torch.nn`"], rows, left=True)


def overall(share: Table, beside: Mapping[str, float], parameters: Mapping[str, int]) -> str:
    """Every layer with its better activation, and the time of an update in units of that of torch's GRU."""
    mean = {name: statistics.fmean(of[name] for of in share.values()) for name in next(iter(share.values()))}
    best: dict[str, str] = {}
    for name in sorted(mean, key=lambda name: -mean[name]):
        best.setdefault(name.split(",")[0], name)
    rows = [
        [code(name), f"{mean[name]:.2f}", f"{beside[name]:.2f}" if name in beside else "", f"{parameters[name]:,}"]
        for name in best.values()
    ]
    return table(["layer, its best activation", "mean share", "time of an update", "parameters, median"], rows)


def verdict(found: Sequence[Tried], new: Sequence[Tried]) -> str:
    near, below = sum(each.near for each in found), sum(each.below_torch for each in found)
    said = (
        f"The table was tested by leaving out one of the {len(found)} tasks at a time and picking a layer from the"
        f" others. On {near} the pick is within 5 points of the best layer, or within 10 % of the distance between"
        f" chance and the best score. **On {below} of the tasks left out"
    )
    if new:
        near, below = sum(each.near for each in new), sum(each.below_torch for each in new)
        names = ", ".join(each.task for each in new)
        said += f", and on {below} of {len(new)} that no table contains ({names})"
    said += ", torch's GRU or LSTM was better**, so train one of them too."
    return said + (f" Of those {len(new)} the pick is near the best on {near}." if new else "") + "\n"


def activations(screened: Table) -> str:
    """The mean share of every activation, of which all were tried in the screening alone."""
    rows = []
    tried = list(dict.fromkeys(name for names in ACTIVATIONS.values() for name in names if name))
    for layer, names in ACTIVATIONS.items():
        if len(names) > 1:
            mean = {n: statistics.fmean(of[f"{layer}, {n}"] for of in screened.values()) for n in names}
            rows.append([layer, *(f"{mean[name]:.2f}" if name in mean else "" for name in tried)])
    return table(["", *tried], rows)


def tables(scores: Table, share: Table, found: Sequence[Tried], new: Sequence[Tried], screened: Table) -> str:
    """All scores, and each task left out."""
    tasks = list(share)
    parts = ["# What the study found\n", f"Written by `python benches/study report`. {verdict(found, new)}"]
    for kind in dict.fromkeys(TASKS[task].kind for task in tasks):
        own = of_kind(share, kind)
        rows = [
            [name, f"{mean:.2f}", *(f"{scores[task][name]:.3f}" for task in own)] for name, mean in ranked(share, kind)
        ]
        parts.append(f"## {kind[0].upper() + kind[1:]}\n\n" + table(["", "share", *own], rows))
    head = ["task", "first pick", "its score", "best", "its score", "near", "below torch's"]
    for title, each_of in (("Each task left out", found), ("Tasks that no table contains", new)):
        rows = [[each.task, each.pick, f"{each.score:.3f}", each.best, f"{each.most:.3f}"] for each in each_of]
        for row, each in zip(rows, each_of, strict=True):
            row += ["yes" if said else "no" for said in (each.near, each.below_torch)]
        parts += [f"## {title}\n", table(head, rows)] if rows else []
    parts += ["## Activations in the screening, by mean share\n", activations(screened)]
    return "\n".join(parts)


def seeds(results: Results, updates: int, layers: Collection[str]) -> str:
    """How many each of these layers has, in words."""
    runs = (name.split(" | ") for name in results if name.endswith(f" | {updates}"))
    each = {(task, layer, seed) for task, layer, _, seed, _ in runs if layer in layers}
    counts = Counter((task, layer) for task, layer, _ in each)
    least, most = min(counts.values()), max(counts.values())
    return ("1 seed" if most == 1 else f"{most} seeds") if least == most else f"{least} to {most} seeds"


def of_every_task(scores: Table) -> Table:
    """Only layers that were trained on all tasks."""
    layers = set.intersection(*map(set, scores.values()))
    return {task: {name: score for name, score in of.items() if name in layers} for task, of in scores.items()}


def guide(results: Results, updates: int = UPDATES) -> tuple[str, str]:
    """RESULTS.md, and what stands between the marks of docs/choosing.md."""
    own, other = among(results, TASKS), among(results, UNSEEN)
    scores, screening = of_every_task(means(own, updates)), means(own, QUARTER)
    share, screened = shares(scores, own), shares(screening, own)
    found, new = left_out(scores, share), unseen(means(other, updates), share, other)
    sizes: dict[str, list[int]] = {}
    for name, each in own.items():
        sizes.setdefault(name.split(" | ")[1], []).append(each["parameters"])
    parameters = {name: round(statistics.median(counts)) for name, counts in sizes.items()}
    beside = json.loads(TIMES.read_text(encoding="utf-8"))
    budget = f"After {updates:,} updates, {seeds(own, updates, next(iter(scores.values())))}:\n"
    measured = kinds(share, of_seeds(scores, own, updates))
    page = "\n".join([verdict(found, new), budget, measured, overall(share, beside, parameters)])
    return tables(scores, share, found, new, screened), page


def placed(page: str, part: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + part + "\n" + END + rest.partition(END)[2]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="study report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--updates", type=int, default=UPDATES, metavar="N", help=f"{QUARTER}: what the screening says")
    options = parser.parse_args(arguments)
    found, part = guide(read(options.results), options.updates)
    TABLES.write_text(found, encoding="utf-8")
    GUIDE.write_text(placed(GUIDE.read_text(encoding="utf-8"), part), encoding="utf-8")
    return 0
