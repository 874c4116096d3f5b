"""Adapters on a small transformer: orthogonal ones of this package beside LoRA, all weights, and the last layer.

A vision transformer of Hugging Face transformers, built at random (nothing is downloaded), learns to read the 8 x 8
digits of scikit-learn. Then all pages come turned by 90 degrees, and few of them have labels. HRA and OFT leave every
weight as it is and turn the inputs of the linear layers by orthogonal matrices, which start as the identity.

    pip install transformers peft
    python examples/adapter.py [--out FILE.png] [--quick]
"""

import argparse
import copy
import time
from functools import partial

import torch
from matplotlib.figure import Figure
from peft import LoraConfig, get_peft_model
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import ViTConfig, ViTForImageClassification

import isometry.torch as it

IMAGES = {"image_size": 8, "patch_size": 2, "num_channels": 1, "num_labels": 10}
SIZES = IMAGES | {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 3}
LORA = LoraConfig(r=4, target_modules="all-linear", exclude_modules="classifier")


def adapted(adapter, model: nn.Module) -> nn.Module:
    for name, layer in list(model.vit.named_modules()):
        if isinstance(layer, nn.Linear):
            model.vit.set_submodule(name, adapter(layer))
    return model


WAYS = {  # learning rate, and change of the frozen model
    "all weights": (1e-3, lambda model: model.requires_grad_(True)),
    "last layer": (1e-2, lambda model: model.classifier.requires_grad_(True) and model),
    "LoRA, r = 4": (1e-2, lambda model: get_peft_model(model, LORA)),
    "OFT, blocks of 8": (1e-2, partial(adapted, partial(it.adapters.OFT, block_size=8))),
    "HRA, r = 8": (1e-2, partial(adapted, partial(it.adapters.HRA, r=8))),
}


def train(model: nn.Module, x: Tensor, y: Tensor, rate: float, updates: int) -> None:
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
    for _ in range(updates):
        chosen = torch.randint(len(x), (50,))
        optimiser.zero_grad()
        cross_entropy(model(pixel_values=x[chosen]).logits, y[chosen]).backward()
        optimiser.step()


@torch.no_grad()
def right(model: nn.Module, x: Tensor, y: Tensor) -> float:
    return 100 * (model(pixel_values=x).logits.argmax(-1) == y).float().mean().item()


def main(out: str | None, quick: bool) -> None:
    updates, counts, seeds = (3, [25, 50], 1) if quick else (200, [25, 50, 100, 200, 400], 3)
    digits, order = load_digits(), torch.randperm(1797, generator=torch.manual_seed(0))
    x, y = torch.tensor(digits.images / 16, dtype=torch.float32)[order, None], torch.tensor(digits.target)[order]
    turned, tested = x.rot90(dims=(2, 3)), slice(1300, None)
    base = ViTForImageClassification(ViTConfig(**SIZES))
    train(base, x[:900], y[:900], 1e-3, 3 * updates)
    before = [right(base, images[tested], y[tested]) for images in (x, turned)]
    print(f"as trained: {before[0]:.1f} % of the upright test digits are right, {before[1]:.1f} % of the turned ones")
    found = {}
    for way, (rate, change) in WAYS.items():
        start, accuracies = time.perf_counter(), torch.zeros(len(counts), seeds)
        for i, j in torch.cartesian_prod(torch.arange(len(counts)), torch.arange(seeds)).tolist():
            torch.manual_seed(j)
            model, own = change(copy.deepcopy(base).requires_grad_(False)), 900 + torch.randperm(400)[: counts[i]]
            train(model, turned[own], y[own], rate, updates)
            accuracies[i, j] = right(model, turned[tested], y[tested])
        name = f"{way}: {sum(p.numel() for p in model.parameters() if p.requires_grad):,} numbers"
        found[name], seconds = accuracies.median(-1).values.tolist(), (time.perf_counter() - start) / accuracies.numel()
        print(f"{name}, {seconds:.1f} s,", ", ".join(f"{a:.1f} %" for a in found[name]), flush=True)
    if out:
        draw(out, counts, found)


def draw(out: str, counts: list[int], found: dict[str, list[float]]) -> None:
    figure = Figure(figsize=(7.5, 4), layout="constrained")
    axes = figure.subplots()
    axes.semilogx(counts, list(zip(*found.values(), strict=True)), "o-", label=list(found))
    axes.set(xlabel="labelled turned digits", ylabel="turned test digits right in %", xticks=counts, xticklabels=counts)
    axes.minorticks_off()
    axes.legend(frameon=False)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    parser.add_argument("--quick", action="store_true", help="3 updates, one seed")
    main(**vars(parser.parse_args()))
