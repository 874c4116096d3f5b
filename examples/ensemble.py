"""An ensemble of recurrent networks, trained in one call per update by `torch.func.vmap`, beside a loop over them.

Each network reads 8 x 8 digits row by row with a ScoRNN, and is trained on its own bootstrap sample of 200 images. With
`vmap` the recurrences of all are one call of the kernel. The mean of their probabilities is right more often than one.

    python examples/ensemble.py [--out FILE.png] [--quick]
"""

import argparse
import time

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.utils import shuffle
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy

import isometry.torch as it

UNITS, BATCH, TRAINED = 32, 20, 200


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.readout = it.nn.ScoRNN(8, UNITS), nn.Linear(UNITS, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(self.layer(x)[0][-1])  # scores (images, 10) from rows of pixels (8, images, 8)


def both(count: int):
    """An ensemble twice, each as scores of x (members, 8, images, 8) and an optimiser: by a loop, and by vmap."""
    models = [Reader() for _ in range(count)]
    parameters, buffers = stack_module_state(models)  # copies with an axis for the members
    one = lambda parameters, buffers, x: functional_call(models[0], (parameters, buffers), (x,))
    loop = lambda x: torch.stack([model(own) for model, own in zip(models, x, strict=True)])
    mapped = lambda x: vmap(one)(parameters, buffers, x)
    adam = lambda numbers: torch.optim.Adam(numbers, lr=3e-3)  # treats every number, hence every member, alone
    return (loop, adam([p for model in models for p in model.parameters()])), (mapped, adam(parameters.values()))


def update(scores, optimiser, x: Tensor, y: Tensor) -> float:
    start = time.perf_counter()
    optimiser.zero_grad()
    (cross_entropy(scores(x).flatten(0, 1), y.flatten()) * len(x)).backward()
    optimiser.step()
    return 1000 * (time.perf_counter() - start)


def main(out: str | None, quick: bool) -> None:
    torch.manual_seed(0)
    counts, timed, updates = ([1, 2], 3, 3) if quick else ([1, 2, 4, 8, 16, 32, 64], 30, 500)
    digits = shuffle(*load_digits(return_X_y=True), random_state=0)
    x, y = torch.tensor(digits[0] / 16).float().view(-1, 8, 8).transpose(0, 1), torch.tensor(digits[1])
    bootstrap = torch.randint(TRAINED, (counts[-1], TRAINED))

    def batch(count: int) -> tuple[Tensor, Tensor]:
        chosen = bootstrap[:count].gather(1, torch.randint(TRAINED, (count, BATCH)))
        return x[:, chosen].transpose(0, 1), y[chosen]

    times, right = [], []
    for count in counts:
        (loop, mapped), data = both(count), batch(count)
        far = (loop[0](data[0]) - mapped[0](data[0])).abs().max()
        steps = torch.tensor([[update(*loop, *data), update(*mapped, *data)] for _ in range(timed)]).median(0).values
        times.append(steps.tolist())
        print(f"{count:2} members: loop {steps[0]:.1f}, vmap {steps[1]:.1f} ms, scores differ by {far:.0e}")
    for _ in range(updates):
        update(*mapped, *batch(count))
    shares = mapped[0](x[:, TRAINED:].expand(count, -1, -1, -1)).detach().softmax(-1)
    for count in counts:
        drawn = [shares[torch.randperm(counts[-1])[:count]].mean(0).argmax(-1) for _ in range(50)]
        right.append(100 * (torch.stack(drawn) == y[TRAINED:]).float().mean(-1).numpy())
        print(f"{count:2} members: {right[-1].mean():.1f} % of the test images right")
    if out:
        draw(out, counts, times, right)


def draw(out: str, counts: list[int], times: list[list[float]], right: list) -> None:
    figure = Figure(figsize=(5, 7.2), layout="constrained")
    cost, use = figure.subplots(2, 1)
    cost.semilogx(counts, times, "o-", label=["loop", "vmap"])
    cost.legend(frameon=False)
    use.semilogx(counts, right, "o", color="C2", alpha=0.1)
    use.semilogx(counts, [a.mean() for a in right], "C2-")
    members = {"xlabel": "members", "xticks": counts, "xticklabels": counts}
    cost.set(ylabel="milliseconds per update", title="Cost", **members)
    use.set(ylabel="test images right in %", title="Use: 50 ensembles of each size, and their mean", **members)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    parser.add_argument("--quick", action="store_true", help="two members, 3 updates")
    main(**vars(parser.parse_args()))
