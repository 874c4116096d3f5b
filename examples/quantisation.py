"""A random rotation before a quantiser: outliers of a few channels are spread over all, and the error drops.

Activations x of language models have some channels that are many times as large as the others. A quantiser with one
scale per token then leaves few levels for the rest. With R = H D, D random signs,

    x w^T = (x R^T) (w R^T)^T,

so rotated activations times rotated weights are the same product, and both have entries of nearly equal size.

    python examples/quantisation.py [--out FILE.png]
"""

from __future__ import annotations

import argparse

import numpy as np

import isometry as iso

TOKENS, CHANNELS, UNITS, OUTLIERS, SIZE = 256, 1024, 512, 8, 40.0
BITS = (3, 4, 5, 6, 8)


def quantised(x: np.ndarray, bits: int) -> np.ndarray:
    """The nearest of 2^bits - 1 levels for each row, symmetric around zero."""
    step = np.abs(x).max(-1, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.round(x / step) * step


def error(x: np.ndarray, w: np.ndarray, bits: int) -> float:
    """The relative error of x w^T if both are quantised."""
    exact = x @ w.T
    return float(np.linalg.norm(quantised(x, bits) @ quantised(w, bits).T - exact) / np.linalg.norm(exact))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    x = rng.standard_normal((TOKENS, CHANNELS)).astype(np.float32)
    x[:, rng.choice(CHANNELS, OUTLIERS, replace=False)] *= SIZE
    w = (rng.standard_normal((UNITS, CHANNELS)) / CHANNELS**0.5).astype(np.float32)

    rotation = iso.Hadamard.random(CHANNELS, rng=1, dtype=np.float32)
    turned, weights = rotation(x), rotation(w)
    same = np.abs(turned @ weights.T - x @ w.T).max() / np.abs(x @ w.T).max()
    print(f"the product of the rotated matrices differs by {same:.0e}")

    errors = {bits: (error(x, w, bits), error(turned, weights, bits)) for bits in BITS}
    print("bits  plain   rotated")
    for bits, (plain, rotated) in errors.items():
        print(f"{bits:4}  {plain:6.2%}  {rotated:6.2%}")
    if options.out:
        draw(options.out, x, turned, errors)


def draw(out: str, x: np.ndarray, turned: np.ndarray, errors: dict[int, tuple[float, float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for a, label, colour in ((x, "plain", "tab:orange"), (turned, "rotated", "tab:blue")):
        left.plot(np.abs(a).max(0), color=colour, label=label, linewidth=0.8)
    left.set(yscale="log", xlabel="channel", ylabel="largest |x| of all tokens", title="Activations", ylim=(0.8, None))
    for i, (label, colour) in enumerate((("plain", "tab:orange"), ("rotated", "tab:blue"))):
        right.plot(list(errors), [100 * e[i] for e in errors.values()], "o-", color=colour, label=label)
    right.set(yscale="log", xlabel="bits of x and w", ylabel="error of x w^T in %", title="Product")
    right.set_xticks(list(errors))
    left.legend(frameon=False, loc="lower left", ncols=2)
    right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    main()
