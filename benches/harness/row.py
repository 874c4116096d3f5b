"""A row of the bench: our side, its peers, a float64 reference, and the ratios to reach; needs no torch."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from harness.timing import alternate, peak_of
from isometry import _core

# arrays, or tensors that NumPy can read
Results = dict[str, Any]
# tolerances of the relative error against float64 for one operator: of the value, of the gradients
TOLERANCE = (2e-5, 2e-4)
PEAK_SIZE = 512
LIMIT, LIMIT_ROUNDS = "multiply-adds", 1 << 17  # a loop of these in registers, shared by the threads
QUICK_SHARE = 1 / 6
ROUNDS, QUICK_ROUNDS = 7, 3
_TITLES = ("ours ms", 9), ("peer ms", 9), ("ratio", 6), ("bar", 5), ("goal", 5), ("share", 12), ("limit", 6)
HEADER = f"{'row':36} " + " ".join(f"{title:>{width}}" for title, width in _TITLES) + "  plan    peer"


class Settings(NamedTuple):
    """The user's options."""

    threads: int
    quick: bool = False
    alone: bool = False
    only: str = ""
    cores: bool = False


class Frame(NamedTuple):
    """The reference of a group's rows: `product` multiplies two float32 matrices of size PEAK_SIZE."""

    peak: str
    product: Callable[[], object]
    pause: float = 0.0
    seconds: float = 6.0


class Candidate(NamedTuple):
    """One side: `run` is timed; `results` gives its values and gradients (None: another function, not checked)."""

    name: str
    run: Callable[[], object]
    results: Callable[[], Results] | None


def side(name: str, run: Callable[[], Any]) -> Candidate:
    """One side whose outcome is compared."""
    return Candidate(name, run, lambda: named(run()))


def named(outcome: Any) -> Results:
    """What a call returned, by name: a value, a value or gradient and further ones, or results already."""
    if isinstance(outcome, dict):
        return outcome
    first, *rest = outcome if isinstance(outcome, (tuple, list)) else (outcome,)
    return {"value": first, **{f"part {i}": part for i, part in enumerate(rest, 1)}}


class Bar(NamedTuple):
    """The ratio to reach against the fastest of the named peers (None: of all)."""

    label: str
    bar: float
    goal: float
    peers: tuple[str, ...] | None = None

    def judged(self, ratio: float, peer: str) -> dict[str, Any]:
        mark = "goal" if ratio >= self.goal else "pass" if ratio >= self.bar else "MISS"
        return {"against": self.label, "ratio": ratio, "bar": self.bar, "goal": self.goal, "mark": mark, "peer": peer}


@dataclass(frozen=True)
class Row:
    """One comparison. `share` is (bar, goal) of the rate of the product; `flops` is 0 if there are no products."""

    name: str
    ours: Candidate
    peers: Sequence[Candidate]
    reference: Callable[[], Results]
    bars: Sequence[Bar] = ()
    flops: float = 0.0
    tolerance: tuple[float, float] = TOLERANCE
    share: tuple[float, float] | None = None
    plan: str = ""

    def measured(self, frame: Frame, settings: Settings) -> dict[str, Any]:
        """Check, time and print the row; returns its JSON entry. `samples` are seconds per call of every side."""
        peers = [] if settings.alone else self.peers
        entry, errors = self.checked(peers)
        if entry["wrong"]:
            return entry
        entry["errors_in_tolerances"] = {name: error for name, (error, _) in errors.items()}
        right = [peer for peer in peers if errors.get(peer.name, (0.0, ""))[0] <= 1]
        entry["peak_bytes"] = peak_of(self.ours.run)
        seconds, rounds = (frame.seconds * QUICK_SHARE, QUICK_ROUNDS) if settings.quick else (frame.seconds, ROUNDS)
        functions: dict[str, Callable[[], Any]] = {side.name: side.run for side in (self.ours, *right)}
        functions[frame.peak] = frame.product
        # an older build, which compare.py measures, has none
        functions[LIMIT] = partial(getattr(_core, "multiply_adds", lambda *_: 0), LIMIT_ROUNDS, settings.threads)
        operations = functions[LIMIT]()
        samples = alternate(functions, seconds, min_rounds=rounds, pause=frame.pause)
        medians = {name: statistics.median(times) for name, times in samples.items()}
        own, peak = medians[self.ours.name], 2 * PEAK_SIZE**3 / medians[frame.peak]
        share, most = self.flops / own / peak, (operations or math.nan) / medians[LIMIT]
        entry |= {"ours": self.ours.name, "seconds": medians, "flops": self.flops, "share": share}
        entry |= {"peak_gflops": peak / 1e9, "limit": self.flops / own / most, "limit_gflops": most / 1e9}
        entry["samples"] = {name: [float(f"{t:.4g}") for t in times] for name, times in samples.items()}
        for bar in self.bars:
            rivals = {peer.name: medians[peer.name] for peer in right if bar.peers is None or peer.name in bar.peers}
            if rivals:
                best = min(rivals, key=lambda rival: rivals[rival])
                entry["bars"].append(bar.judged(rivals[best] / own, best))
        self._print(entry)
        if self.share is not None:
            found = Bar("product peak", *self.share).judged(share, frame.peak)
            entry["bars"].append(found)
            print(f"{'':36} {f'share of {frame.peak}':>19} {share:6.0%} {self.share[0]:5.0%} {self.share[1]:5.0%} "
                  f"{found['mark']:5}", flush=True)  # fmt: skip
        for peer in peers:
            if peer not in right:
                print(f"{'':36} left out, its {errors[peer.name][1]} is wrong: {peer.name}", flush=True)
            elif all(peer.name != bar["peer"] for bar in entry["bars"]):
                print(f"{'':36} {'':9} {medians[peer.name] * 1e3:9.3f}  also: {peer.name}", flush=True)
        return entry

    def checked(self, peers: Sequence[Candidate] = ()) -> tuple[dict[str, Any], dict[str, tuple[float, str]]]:
        """The entry of our side, printed if its values are wrong; of each side its largest error and where it is."""
        reference = self.reference()
        errors = {s.name: worst(s.results(), reference, self.tolerance) for s in (self.ours, *peers) if s.results}
        error, where = errors[self.ours.name]
        if error > 1:
            print(f"{self.name:36} WRONG: the {where} is off by {error:.3g} tolerances; not timed", flush=True)
        head = {"row": self.name, "plan": self.plan, "tolerance": self.tolerance}
        return head | {"wrong": error > 1, "bars": []}, errors

    def _print(self, entry: Mapping[str, Any]) -> None:
        """A line for each bar, or one without."""
        own, shares = entry["seconds"][self.ours.name], [entry[key] for key in ("share", "limit")]
        share = "".join(f"{part:7.0%}" if self.flops else f"{'':7}" for part in shares)
        start = f"{self.name:36} {own * 1e3:9.3f}"
        for bar in entry["bars"]:
            print(f"{start} {entry['seconds'][bar['peer']] * 1e3:9.3f} {bar['ratio']:5.2f}x {bar['bar']:5g} "
                  f"{bar['goal']:5g} {bar['mark']:5}{share}  {self.plan:7} {bar['peer']}", flush=True)  # fmt: skip
            start = f"{'':36} {own * 1e3:9.3f}"
        if not entry["bars"]:
            print(f"{start} {'':34}{share}  {self.plan}".rstrip(), flush=True)


def relative_error(found: Any, reference: Any) -> float:
    """||found - reference||_F / max(||reference||_F, 1e-3), infinity if a shape differs or a NaN occurs."""
    found, reference = np.asarray(found), np.asarray(reference)
    if found.shape != reference.shape:
        return float("inf")
    wide = found.astype(np.result_type(found, np.float64))
    error = float(np.linalg.norm(wide - reference)) / max(float(np.linalg.norm(reference)), 1e-3)
    return error if error == error else float("inf")


def worst(found: Results, reference: Mapping[str, Any], tolerance: tuple[float, float]) -> tuple[float, str]:
    """The largest error in units of its tolerance, and its name; above 1 the values are wrong."""
    ratios = {}
    for key, expected in reference.items():
        bound = tolerance[key != "value"]
        ratios[key] = relative_error(found[key], expected) / bound if key in found else float("inf")
    key = max(ratios, key=lambda k: ratios[k])
    return ratios[key], key
