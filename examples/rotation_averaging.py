"""The mean of a million rotations of space, and one that wrong measurements move less.

One rotation was measured a million times, with ten degrees of noise about each axis; a share of the measurements is
wrong by the same 90 degrees. Three averages of the matrices R_i:

    - chordal mean: the rotation nearest to their mean, its polar factor. `Rotation.mean` of SciPy is the same.
    - geodesic mean: the least sum of squared angles to all R_i, by steps R <- R exp(mean of log R^T R_i).
    - geodesic median: the least sum of angles; its steps weigh each log by 1 / angle (Hartley, Aftab, Trumpf 2011).

    python examples/rotation_averaging.py [--out FILE.png] [--quick]
"""

import argparse
import timeit
from time import process_time

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial.transform import Rotation

import isometry as iso

NOISE, SHARES, STEPS = np.radians(10), (0.0, 0.1, 0.2, 0.3, 0.4), 15


def logarithm(w: np.ndarray) -> np.ndarray:
    """The rotation vectors (count, 3) of matrices (count, 3, 3)."""
    return iso.Exponential.from_matrix(w).rotvec()


def chordal(w: np.ndarray) -> np.ndarray:
    return iso.linalg.procrustes(w.mean(0), special=True)


def step(mean: np.ndarray, w: np.ndarray, power: int) -> np.ndarray:
    """One step to the geodesic mean (power 0) or median (power 1)."""
    r = logarithm(mean.T @ w)
    weight = np.maximum(np.linalg.norm(r, axis=-1), 1e-9) ** -power
    return mean @ iso.Exponential.from_rotvec(weight @ r / weight.sum()).matrix()


def main(out: str | None, quick: bool) -> None:
    rng, count = np.random.default_rng(0), 1000 if quick else 1_000_000
    noise, x = NOISE * rng.standard_normal((count, 3)), rng.standard_normal((count, 3))
    truth, wrong = iso.Exponential.from_rotvec([[0.3, -0.5, 0.9], [0, 0, np.pi / 2]]).matrix()
    errors: dict[str, list[float]] = {"chordal mean": [], "geodesic mean": [], "geodesic median": []}
    for share in SHARES:
        w = truth @ iso.Cayley.from_rotvec(noise).matrix()
        w[: int(share * count)] = w[: int(share * count)] @ wrong
        means = np.stack([chordal(w)] * 3)
        for _ in range(STEPS):
            means[1], means[2] = step(means[1], w, 0), step(means[2], w, 1)
        print(f"{share:.0%} wrong, degrees off:", end="")
        for name, angle in zip(errors, np.linalg.norm(logarithm(truth.T @ means), axis=-1), strict=True):
            errors[name].append(float(np.degrees(angle)))
            print(f"  {name} {errors[name][-1]:.3f}", end="\n" if name == "geodesic median" else "")

    theirs, mean, r = Rotation.from_matrix(w), chordal(w), logarithm(w)
    print(f"the chordal mean differs from SciPy's by {np.abs(mean - theirs.mean().as_matrix()).max():.0e}")
    ours, back = iso.Cayley.from_rotvec(r), Rotation.from_matrix(mean).inv()
    calls = {
        "chordal mean": (lambda: chordal(ours.matrix()), lambda: theirs.mean()),
        "R_i x_i": (lambda: ours(x), lambda: theirs.apply(x)),
        "log R^T R_i": (lambda: logarithm(mean.T @ w), lambda: (back * theirs).as_rotvec()),
    }
    fastest = lambda call: 1000 * min(timeit.repeat(call, timer=process_time, number=1, repeat=5))
    times = {name: [fastest(call) for call in pair] for name, pair in calls.items()}
    for name, (a, b) in times.items():
        print(f"{name}: {a:.1f} ms of CPU time, SciPy {b:.1f} ms")
    if out:
        draw(out, errors, times, f"{count:,} rotations")


def draw(out: str, errors: dict[str, list[float]], times: dict[str, list[float]], title: str) -> None:
    figure = Figure(figsize=(5, 7.2), layout="constrained")
    upper, lower = figure.subplots(2, 1)
    for (name, found), style in zip(errors.items(), ("o-", "s--", "^-"), strict=True):
        upper.plot([100 * share for share in SHARES], found, style, label=name)
    upper.set(xlabel="wrong measurements in %", ylabel="error in degrees", title=title)
    for k, side in enumerate(("isometry", "SciPy")):
        bars = lower.bar(np.arange(3) + 0.4 * k, [pair[k] for pair in times.values()], 0.4, label=side)
        lower.bar_label(bars, fmt="%.0f")
    lower.margins(y=0.1)
    lower.set(ylabel="milliseconds of CPU time", title=title, xticks=np.arange(3) + 0.2, xticklabels=list(times))
    upper.legend(frameon=False)
    lower.legend(frameon=False)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    parser.add_argument("--quick", action="store_true", help="a thousand rotations instead of a million")
    main(**vars(parser.parse_args()))
