"""A normalising flow whose coordinates are mixed by trained reflections, beside permutations and random reflections.

A coupling layer changes half of the coordinates by functions of the other half, so that something has to mix them
before the next one. An orthogonal W is free there: log|det W| = 0, and the inverse is W^H. W is a product of random
reflections, a permutation, or one that is trained as reflections. The data are scikit-learn's digits, with noise.

    python examples/normalising_flow.py [--out FILE.png] [--quick]
"""

import argparse
import math
import time

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import Tensor, nn

import isometry.torch as it

N, LAYERS, UNITS, BATCH, SHADES, EDGE = 64, 8, 64, 128, 17, 0.05
KINDS = ("random reflections", "permutations", "trained reflections")


class Flow(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.mixings, self.nets = nn.ModuleList(), nn.ModuleList()
        for _ in range(LAYERS):
            permuted = it.Householder.from_matrix(torch.eye(N)[torch.randperm(N)])
            mixing = it.nn.OperatorModule(it.Householder.random(N) if kind == "random reflections" else permuted)
            self.mixings.append(mixing.requires_grad_(kind == "trained reflections"))
            hidden = nn.Linear(N // 2, UNITS), nn.Tanh(), nn.Linear(UNITS, UNITS), nn.Tanh()
            self.nets.append(nn.Sequential(*hidden, nn.Linear(UNITS, N)))

    def forward(self, images: Tensor) -> Tensor:
        """Bits per pixel, minus the log of the density, of images (count, N) with values in [0, SHADES)."""
        p = EDGE + (1 - 2 * EDGE) * images / SHADES
        z, density = p.logit(), math.log((1 - 2 * EDGE) / SHADES) - (p * (1 - p)).log().mean(-1)
        for mix, net in zip(self.mixings, self.nets, strict=True):
            kept, changed = mix(z).chunk(2, -1)
            scale, shift = net(kept).chunk(2, -1)
            z, density = torch.cat((kept, changed * scale.exp() + shift), -1), density + scale.sum(-1) / N
        return ((z.square().mean(-1) + math.log(2 * math.pi)) / 2 - density) / math.log(2)

    @torch.no_grad()
    def draw(self, count: int) -> Tensor:
        """New images: all steps backward, the mixings by their adjoints."""
        z = torch.randn(count, N)
        for mix, net in zip(reversed(self.mixings), reversed(self.nets), strict=True):
            kept, changed = z.chunk(2, -1)
            scale, shift = net(kept).chunk(2, -1)
            z = mix.operator().H(torch.cat((kept, (changed - shift) * (-scale).exp()), -1))
        return SHADES * (z.sigmoid() - EDGE) / (1 - 2 * EDGE)


def train(kind: str, seed: int, updates: int, every: int) -> tuple[Flow, list[float]]:
    torch.manual_seed(seed)
    images = torch.tensor(load_digits().data, dtype=torch.float32)[torch.randperm(1797)]
    trained, tested = images[:1437], images[1437:].repeat(4, 1)
    flow, bits = Flow(kind), []
    optimiser = torch.optim.Adam(flow.parameters(), lr=2e-3)
    for k in range(1, updates + 1):
        x = trained[torch.randint(len(trained), (BATCH,))]
        optimiser.zero_grad()
        flow(x + torch.rand_like(x)).mean().backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 1.0)
        optimiser.step()
        if k % every == 0:
            bits.append(flow(tested + torch.rand_like(tested)).mean().item())
    return flow, bits


def draw(out: str, updates: range, curves: dict[str, list[list[float]]], images: Tensor) -> None:
    figure = Figure(figsize=(5, 7.6), layout="constrained")
    upper, lower = figure.subplots(2, 1)
    for k, (kind, runs) in enumerate(curves.items()):
        upper.plot(updates, list(zip(*runs, strict=True)), f"C{k}", label=[kind] + ["_"] * (len(runs) - 1))
    upper.set(xlabel="update", ylabel="bits per pixel of test images")
    upper.legend(frameon=False, title="a line per seed")
    images = nn.functional.pad(images.view(4, 8, 8, 8), (1, 1, 1, 1), value=SHADES / 4).transpose(1, 2).reshape(40, 80)
    lower.imshow(images.numpy(), cmap="gray_r", vmin=0, vmax=SHADES)
    lower.set(title="drawn from the flow with trained reflections", xticks=[], yticks=[])
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    parser.add_argument("--quick", action="store_true", help="4 updates instead of 1,200, one seed instead of three")
    options = parser.parse_args()
    curves, (updates, every, seeds) = {}, (4, 2, 1) if options.quick else (1200, 50, 3)
    for kind in KINDS:
        start, runs = time.perf_counter(), [train(kind, seed, updates, every) for seed in range(seeds)]
        curves[kind] = [bits for _, bits in runs]
        least, seconds = ", ".join(f"{min(bits):.3f}" for _, bits in runs), (time.perf_counter() - start) / seeds
        print(f"{kind}: {least} bits per pixel, {seconds:.1f} s each", flush=True)
    if options.out:
        draw(options.out, range(every, updates + 1, every), curves, runs[0][0].draw(32))
