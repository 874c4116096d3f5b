"""Why a system does not learn a task here: gradients over time, the spectrum of the Jacobian, states and activations.

    python benches/reproduction diagnosis          measures what cells.toml lists as [[diagnosis]], some minutes
    python benches/reproduction diagnosis draw     docs/figures/diagnosis.png alone, from results/diagnosis.json

Every network is measured at the start and after some hundred updates, with the settings of its paper and with those
of `instead`; docs/not-learning.md says what came out. A case takes its cell's options; networks are small, so that it
takes less than a minute.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import isometry.torch as it
from isometry.cli import plots
from isometry.cli.build import as_batch
from isometry.cli.compare.plan import plan
from isometry.cli.session import Session, prepared
from reproduction.cell import CELLS, FACTS, Job, title
from reproduction.pictures import save
from reproduction.results import FOLDER, rounded

FILE = FOLDER / "diagnosis.json"
PICTURE = FOLDER.parents[2] / "docs/figures/diagnosis.png"
SHARES = (0.05, 0.25, 0.5, 0.75, 1.0)  # of the sequence, between h_t and the end
WINDOW = 100  # the loss is the median of so many updates
SEED = 1  # of the batches that are measured
FLOOR = 1e-12  # of the picture's axes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("measure", "draw"), nargs="?", default="measure")
    parser.add_argument("--updates", type=int, default=FACTS["diagnosed"]["updates"], metavar="N")
    parser.add_argument("--file", type=Path, default=FILE, metavar="FILE", help="where the measurements stand")
    parser.add_argument("--picture", type=Path, default=PICTURE, metavar="FILE", help="where the picture goes")
    options = parser.parse_args(arguments)
    if options.command == "measure":
        found = []
        for case in FACTS["diagnosis"]:
            found += measured(case, options.updates)
            print(f"{case['cell']}: {title(case['model'])}", file=sys.stderr)
        lines = ",\n ".join(json.dumps(entry) for entry in found)
        options.file.write_text(f"[\n {lines}\n]\n", encoding="utf-8")
    draw(json.loads(options.file.read_text(encoding="utf-8")), options.picture)
    return 0


def measured(case: Mapping[str, Any], updates: int) -> list[dict[str, Any]]:
    """The case at the start, after the updates, and after them with other options."""
    head = {name: case[name] for name in ("cell", "model", "hidden")}
    found = []
    with prepared(1):
        for change in ({}, case["instead"]) if "instead" in case else ({},):
            session = started(case, change)
            for done in (0, case.get("updates", updates) if change else updates):
                losses = [session.step() for _ in range(done)][-WINDOW:]
                loss = rounded(float(np.median(losses)) / session.baseline) if losses else None
                found.append(head | {"instead": change, "updates": done, "loss": loss} | figures(session))
    return found


def started(case: Mapping[str, Any], change: Mapping[str, Any]) -> Session:
    """The network before its first update. `start` is no option: "identity" sets the square factors of W to 1, "silent"
    the column of V to 0 that reads the blank of copying.
    """
    options = CELLS[case["cell"]]["options"] | {name: value for name, value in change.items() if name != "start"}
    job = Job(case["cell"], "diagnosis", case["model"], 1, ("hidden", case["hidden"]), options, 1)
    (run,) = plan(job.given(), [job.model], [0], None, Path("unused"))
    session = Session(run.settings)
    layer: Any = session.network.layer
    with torch.no_grad():
        if change.get("start") == "identity":
            for factor in layer.recurrent_parameters():
                if factor.dim() == 2 and factor.shape[0] == factor.shape[1]:
                    factor.copy_(torch.eye(len(factor)))
        if change.get("start") == "silent":
            layer.weight_ih_l0[:, 0] = 0
    return session


def figures(session: Session) -> dict[str, Any]:
    """All that is measured of a network; pairs of real numbers stand for complex ones."""
    x, target = as_batch(session.task.draw(np.random.default_rng(SEED)))
    layer: Any = session.network.layer
    with torch.no_grad():
        states = layer(x)[0]
    steps = len(x)
    distances = [max(1, round(share * (steps - 1))) for share in SHARES]
    last = [steps - 1 - distance for distance in distances]
    gradients = [gradient(session, x, target, states, t) for t in last]
    spectra = [spectrum(layer, x[:, :1], states[t, 0], t) for t in last]
    norms = real(states).norm(dim=-1).mean(1)
    return {
        "distances": distances,
        "gradient": [rounded(norm) for norm, _ in gradients],
        "agreement": [rounded(share) for _, share in gradients],
        "singular": [[rounded(value) for value in values] for values in spectra],
        "closed": rounded(float((states[-1] == 0).float().mean())),
        "norms": [rounded(float(norms[t])) for t in (0, steps // 2, steps - 1)],
        "curvature": rounded(curvature(session, x)) if session.settings["task"] == "adding" else None,
    }


def real(h: Tensor) -> Tensor:
    return it.real_state(h) if h.is_complex() else h


def gradient(session: Session, x: Tensor, target: Tensor, states: Tensor, t: int) -> tuple[float, float]:
    """The mean norm of dL/dh_t of a sequence, and how far sequences agree on the direction of d(output)/dh_t: the norm
    of the mean over the mean of the norms, 1 if all are the same.
    """
    network: Any = session.network
    h = states[t].clone().requires_grad_()
    tail = network.layer(x[t + 1 :], h[None])[0]
    whole = torch.cat([states[: t + 1].detach(), tail])
    values = network.readout(real(whole[-1] if network.last_only else whole))
    loss = session.task.loss(values, target)
    (of_loss,) = torch.autograd.grad(loss, h, retain_graph=True)
    (of_output,) = torch.autograd.grad(values[..., 0].sum() if network.last_only else values[-1, :, 0].sum(), h)
    norms, directions = real(of_loss).norm(dim=-1), real(of_output)
    size = directions.norm(dim=-1).mean()
    agreement = float(directions.mean(0).norm() / size) if size > 0 else math.nan
    return float(norms.mean() * len(norms)), agreement


def spectrum(layer: Any, x: Tensor, h: Tensor, t: int) -> tuple[float, float, float]:
    """The largest, the median and the smallest singular value of dh_T/dh_t, for one sequence: every row of the Jacobian
    is the gradient of a copy.
    """
    count = real(h).shape[-1]
    copies = h.expand(count, -1).clone().requires_grad_()
    end = real(layer(x[t + 1 :].expand(-1, count, -1).contiguous(), copies[None])[0][-1])
    (rows,) = torch.autograd.grad(end.diagonal().sum(), copies)
    values = torch.linalg.svdvals(real(rows).double())
    return float(values[0]), float(values.median()), float(values[-1])


@torch.no_grad()
def curvature(session: Session, x: Tensor) -> float:
    """The part of h_T that depends on the product of value and mark at half time: the norm of
    h(1, 1) - h(1, 0) - h(0, 1) + h(0, 0) over that of h(1, 1) - h(0, 0). A linear network has 0.
    """
    ends = {}
    for pair in ((0, 0), (0, 1), (1, 0), (1, 1)):
        changed = x.clone()
        changed[len(x) // 2] = torch.tensor(pair, dtype=x.dtype)
        layer: Any = session.network.layer
        ends[pair] = real(layer(changed)[0][-1])
    product = ends[1, 1] - ends[1, 0] - ends[0, 1] + ends[0, 0]
    return float((product.norm(dim=-1) / (ends[1, 1] - ends[0, 0]).norm(dim=-1)).mean())


def draw(entries: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A row for each case: the norm of the gradient, and the singular values, over the distance to the end."""
    cases = list(dict.fromkeys((e["cell"], e["model"]) for e in entries))
    figure, axes = plots.sheet(1.0 + 1.35 * len(cases), len(cases), 2, sharey=True)
    for (cell, model), (left, right) in zip(cases, axes, strict=True):
        for entry in (e for e in entries if (e["cell"], e["model"]) == (cell, model)):
            _case(entry, left, right)
        left.set_title(f"{title(model)}, {cell}", loc="left", fontsize=plots.LETTERS + 1)
        for axis in (left, right):
            axis.set_yscale("log")
            axis.set_ylim(FLOOR, 30)
            axis.set_yticks([1e-12, 1e-8, 1e-4, 1])
            axis.tick_params(which="both", labelsize=plots.LETTERS)
            axis.minorticks_off()
            axis.grid(color="0.92")
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 1].set_title("singular values of dh_T/dh_t", loc="right", fontsize=plots.LETTERS)
    axes[0, 0].legend(fontsize=plots.LETTERS - 1, frameon=False, loc="lower left")
    axes[-1, 0].set_xlabel("T - t\n|dL/dh_t| over |dL/dh_T|", fontsize=plots.LETTERS)
    axes[-1, 1].set_xlabel("T - t\nlargest, median (line), smallest", fontsize=plots.LETTERS)
    save(figure, path)


def _case(entry: Mapping[str, Any], left: Any, right: Any) -> None:
    """At the start grey, after the updates in colour, dashed with other settings."""
    if entry["instead"] and not entry["updates"]:
        return
    if entry["instead"]:
        look = {"color": plots.COLOURS[1], "linestyle": "--", "label": "changed"}
    elif entry["updates"]:
        look = {"color": plots.COLOURS[0], "label": f"{entry['updates']} updates"}
    else:
        look = {"color": plots.GREY, "label": "start"}
    at = entry["distances"]
    gradients = np.array(entry["gradient"], float)
    left.plot(at, np.maximum(gradients / gradients[0], FLOOR), linewidth=1.5, **look)
    largest, median, smallest = np.maximum(np.array(entry["singular"], float), FLOOR).T
    right.plot(at, median, linewidth=1.5, **look)
    if not entry["instead"]:
        right.fill_between(at, smallest, largest, color=look["color"], alpha=0.2, linewidth=0)
