"""A tiny Qwen3.5 of Hugging Face transformers, trained on the CPU with its own delta rule and with `register()`.

Three of its four blocks are gated delta rules. It learns to predict the next character of the English text that ships
with Python, from the same random weights and batches both times: one curve of the loss, and two times per step.

    python examples/qwen_delta.py [--steps 30] [--length 2048] [--out FILE.png]
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import nullcontext

import numpy as np
import torch
from tqdm import tqdm
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

from isometry.cli.tasks.characters import shipped
from isometry.integrations.transformers import register

PLAIN, OURS = "transformers", "isometry"


def build(characters: int) -> Qwen3_5ForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "head_dim": 64}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "linear_num_key_heads": 4, "linear_num_value_heads": 4}
    widths = {"linear_key_head_dim": 64, "linear_value_head_dim": 64}
    return Qwen3_5ForCausalLM(Qwen3_5TextConfig(vocab_size=characters, **sizes, **heads, **widths))


def train(label: str, text: torch.Tensor, steps: int, length: int) -> tuple[list[float], list[float]]:
    """The loss of every step in bits per character, and its seconds."""
    generator = torch.Generator().manual_seed(1)
    model = build(int(text.max()) + 1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    bits, seconds = [], []
    with register() if label == OURS else nullcontext():
        for _ in (bar := tqdm(range(steps), desc=label, unit="step")):
            start = int(torch.randint(len(text) - length, (), generator=generator))
            ids = text[None, start : start + length]
            began = time.perf_counter()
            optimiser.zero_grad()
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
            loss.backward()
            optimiser.step()
            seconds.append(time.perf_counter() - began)
            bits.append(loss.item() / np.log(2))
            bar.set_postfix(bits=f"{bits[-1]:.2f}")
    return bits, seconds


def draw(out: str, found: dict[str, tuple[list[float], list[float]]], title: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    for (label, (bits, seconds)), style in zip(found.items(), ("tab:orange", "tab:blue"), strict=True):
        dashed = {"linewidth": 4, "alpha": 0.5} if label == PLAIN else {"linewidth": 1.2}
        left.plot(range(1, len(bits) + 1), bits, color=style, label=label, **dashed)
        bar = right.bar(label, statistics.median(seconds), color=style, width=0.6)
        right.bar_label(bar, fmt="%.2f s")
    left.set(xlabel="step", ylabel="bits per character", title=title)
    right.set(ylabel="seconds per step", title="Median time of a step")
    right.margins(y=0.15)
    left.legend(frameon=False)
    left.grid(alpha=0.3)
    figure.savefig(out, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--length", type=int, default=2048, help="characters of a sequence")
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    options = parser.parse_args()

    text = torch.from_numpy(np.unique(list(shipped()), return_inverse=True)[1])
    found = {label: train(label, text, options.steps, options.length) for label in (PLAIN, OURS)}
    for label, (bits, seconds) in found.items():
        median = statistics.median(seconds)
        print(f"{label}: {median:.3f} s per step, {bits[0]:.3f} to {bits[-1]:.3f} bits per character")
    far = max(abs(a - b) for a, b in zip(found[PLAIN][0], found[OURS][0], strict=True))
    print(f"largest difference of the losses: {far:.0e} bits")
    if options.out:
        draw(options.out, found, f"Qwen3.5 of 4 blocks, {options.length:,} characters per step")


if __name__ == "__main__":
    main()
