"""Recurrent layers like those of published models before and after `it.nn.from_torch`: `python benches/models.py`.

Each row builds a layer about as large as one of a package, with random weights and drawn inputs; batches and lengths
are usual ones. The sizes of demucs 4.1.0, easyocr 1.7.2, openunmix 1.3.0 and torchaudio 2.11.0 are those that the
packages make, as are units and layers of flair 0.15.1 and stanza 1.15.0, whose inputs depend on the embeddings. Times
are the least CPU time of a call on one thread, the two layers taking turns, so other work on the machine disturbs them
little.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
from rows.torch.modules import dense


class Model(NamedTuple):
    """A layer in both directions, and its usual batch."""

    package: str
    name: str
    sizes: tuple[int, int, int]  #: of the input, of one direction, layers
    batch: int
    steps: tuple[int, int]  #: the least and the most of a sequence; packed if they differ
    kind: type[nn.RNNBase] = nn.LSTM

    def made(self) -> tuple[nn.RNNBase, Any]:
        """torch's layer, and an input."""
        features, units, layers = self.sizes
        least, most = self.steps
        lengths = [most, *torch.randint(least, most + 1, (self.batch - 1,)).tolist()]
        sequences = [torch.randn(length, features) for length in lengths]
        x = torch.stack(sequences, 1) if least == most else pack_sequence(sequences, enforce_sorted=False)
        return self.kind(features, units, layers, bidirectional=True).eval(), x


MODELS = (
    Model("allennlp", "BiDAF, modelling layer", (800, 100, 2), 40, (80, 400)),
    Model("demucs", "HDemucs, innermost of the encoder", (384, 384, 2), 1, (87, 87)),
    Model("easyocr", "recogniser of the second generation", (256, 256, 1), 1, (149, 149)),
    Model("flair", "SequenceTagger, GloVe and flair embeddings", (4196, 256, 1), 32, (5, 40)),
    Model("openunmix", "OpenUnmix", (512, 256, 3), 16, (255, 255)),
    Model("speechbrain", "CRDNN, LibriSpeech", (2560, 1024, 4), 8, (25, 100)),
    Model("stanza", "NER tagger, with character models", (2148, 256, 1), 32, (5, 40)),
    Model("torchaudio", "Tacotron2, encoder", (512, 256, 1), 32, (30, 150)),
)


def inferred(layer: nn.Module, x: Any) -> Tensor:
    with torch.no_grad():
        return dense(layer(x)[0])


def trained(layer: nn.Module, x: Any) -> Tensor:
    y = dense(layer(x)[0])
    y.square().mean().backward()  # type: ignore[no-untyped-call]
    return y.detach()


def least(run: Callable[[nn.Module, Any], Tensor], layers: list[nn.Module], x: Any, turns: int) -> list[float]:
    """The least CPU seconds of each layer, after a call that is not counted."""
    found = [float("inf")] * len(layers)
    for turn in range(turns + 1):
        for i, layer in enumerate(layers):
            start = time.process_time()
            run(layer, x)
            if turn:
                found[i] = min(found[i], time.process_time() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="packages whose names contain this")
    parser.add_argument("--turns", type=int, default=4)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print("| package | model | torch | here | training: torch | here |\n|---|---|---|---|---|---|")
    for model in MODELS:
        if options.only in model.package:
            theirs, x = model.made()
            layers = [theirs, it.nn.from_torch(theirs)]
            torch.testing.assert_close(*[inferred(layer, x) for layer in layers], rtol=1e-3, atol=1e-4)
            times = [t for run in (inferred, trained) for t in least(run, layers, x, options.turns)]
            cells = " | ".join(f"{t:.3f}" for t in times)
            print(f"| {model.package} | {model.name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
