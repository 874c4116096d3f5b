"""Layers in training, all states and their gradients.

``last_only=True`` beside ``states[-1]``, whose gradient torch pads with zeros to all steps: the networks of
`isometry train pixels`. Marks, sequences that begin within the arrays of a layer's input, beside a loop over the steps
in torch, which sets the state to zero where a mark stands, and beside the layer's own call without marks. Layers of
torch beside what `it.nn.from_torch` makes of them; and layers about as large as those of published models, with random
weights and drawn inputs. The sizes of demucs 4.1.0, easyocr 1.7.2, openunmix 1.3.0 and torchaudio 2.11.0 are those that
the packages make, as are units and layers of flair 0.15.1 and stanza 1.15.0, whose inputs depend on the embeddings.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
from harness.row import Bar, Results, Row
from isometry.integrations.torch import register
from rows.torch.modules import row

ALL, WITHOUT, SHARE = "states[-1]", "without marks", 0.05
SHORT = (2e-4, 2e-3)
#: Steps, sequences and units of torch's own layers.
WITHIN = tuple(product((1, 10, 100), (1, 32), (64, 128)))
#: Steps, sequences, inputs and units of the marked layers, and of torch's.
MARKED, THEIRS = (128, 64, 32, 128), (200, 32, 64, 256)
#: LSTMs in both directions: inputs, units and layers, sequences, and the least and the most of their steps.
MODELS = (
    ("allennlp BiDAF, modelling layer", (800, 100, 2), 40, (80, 400)),
    ("demucs HDemucs, encoder", (384, 384, 2), 1, (87, 87)),  # its innermost layer
    ("easyocr recogniser", (256, 256, 1), 1, (149, 149)),  # of the second generation
    ("flair SequenceTagger", (4196, 256, 1), 32, (5, 40)),  # with embeddings of GloVe and of flair
    ("openunmix", (512, 256, 3), 16, (255, 255)),
    ("speechbrain CRDNN", (2560, 1024, 4), 8, (25, 100)),  # for LibriSpeech
    ("stanza NER", (2148, 256, 1), 32, (5, 40)),  # with models of characters
    ("torchaudio Tacotron2, encoder", (512, 256, 1), 32, (30, 150)),
)


def last_states() -> Iterator[Row]:
    for name, n, steps, keywords in (
        ("ORNN", 128, 784, {"reflections": 16}),
        ("ScoRNN", 170, 784, {}),
        ("EURNN", 1024, 196, {}),
    ):
        draw = partial(twice, name, 1, n, torch.rand, (steps, 50, 1), **keywords)
        title, bars = f"last states {name} T{steps} B50 n{n}", [Bar(ALL, 1.0, 1.1, (ALL,))]
        yield row(title, draw, partial(last, True), {ALL: partial(last, False)}, bars, tolerance=SHORT)


def twice(name: str, inputs: int, n: int, random: Any, shape: tuple[int, ...], **keywords: Any) -> tuple[Any, ...]:
    """A layer, which both sides call, and an input."""
    layer = getattr(it.nn, name)(inputs, n, **keywords)
    return layer, layer, random(shape)


def last(last_only: bool, layer: Any, x: Tensor) -> Tensor:
    layer.last_only = last_only
    states: Tensor = layer(x)[0]
    return states if last_only else states[-1]


def starts() -> Iterator[Row]:
    steps, batch, inputs, n = MARKED
    for name, keywords in (("ORNN", {"reflections": 16}), ("ScoRNN", {})):
        layer = partial(twice, name, inputs, n, torch.randn, MARKED[:3], nonlinearity="tanh", **keywords)
        yield row(
            f"starts {name} {SHARE:.0%} of T{steps} B{batch} n{n}",
            lambda layer=layer: (*layer(), torch.rand(steps, batch) < SHARE),
            lambda layer, x, starts: layer(x, starts=starts)[0],
            {"masked loop": masked, WITHOUT: lambda layer, x, _: layer(x)[0]},
            [Bar("loop", 4.0, 4.0, ("masked loop",)), Bar(WITHOUT, 1 / 1.1, 1.0, (WITHOUT,))],
            unchecked=(WITHOUT,),
            tolerance=SHORT,
        )


def masked(layer: Any, x: Tensor, starts: Tensor) -> Tensor:
    w, drive = layer.recurrent_matrix().mT, x @ layer.weight_ih_l0.mT + layer.bias_l0
    h, states, kept = torch.zeros_like(drive[0]), [], (~starts).to(x.dtype).unsqueeze(-1)
    for t in range(len(x)):
        h = torch.tanh((h * kept[t]) @ w + drive[t])
        states.append(h)
    return torch.stack(states)


def from_torch() -> Iterator[Row]:
    steps, batch, inputs, n = THEIRS
    for kind, bar, packed in ((nn.GRU, 3.0, 6.0), (nn.LSTM, 1.3, 4.0), (nn.RNN, 2.0, 3.0)):
        name, whole = f"from_torch {kind.__name__}", partial(replaced, partial(kind, inputs, n), batch, (steps, steps))
        yield whole(f"{name} training", bar)
        both = partial(kind, inputs, n, bidirectional=True)
        yield replaced(both, batch, (steps // 10, steps), f"{name} packed, both directions", packed)
        yield whole(f"{name} no gradients", 1.0, gradients=False)


class Registered:
    """A call of torch's own layer, on these kernels."""

    def __init__(self, always: bool = True) -> None:
        self.around = partial(register, always=always)

    def __call__(self, layer: Any, *given: Any) -> Any:
        return output(layer, *given)


def within() -> Iterator[Row]:
    for kind, (steps, batch, n), gradients in product((nn.RNN, nn.GRU, nn.LSTM), WITHIN, (True, False)):
        for least in {steps, max(1, steps // 10)} if batch > 1 else {steps}:
            what = f"{'packed ' * (least < steps)}T{steps} B{batch} n{n}{', no gradients' * (not gradients)}"
            layer = partial(kind, n, n)
            yield replaced(
                layer, batch, (least, steps), f"{kind.__name__} {what}", gradients=gradients, ours=Registered()
            )
    for name in ("RNNCell", "GRUCell", "LSTMCell"):
        draw = partial(twice_of, getattr(nn, name), 128)
        yield row(f"{name} n128, no gradients", draw, Registered(), {"torch": output}, [], read=None)
    left = partial(twice_of, nn.GRU, 16)
    yield row("left to torch: GRU n16, one step", left, Registered(always=False), {"torch": output}, [], read=None)


def twice_of(kind: Any, n: int) -> tuple[Any, ...]:
    cell = kind(n, n)
    return cell, cell, torch.randn(1, n)


def published() -> Iterator[Row]:
    for package, sizes, batch, steps in MODELS:
        both = partial(nn.LSTM, *sizes, bidirectional=True)
        yield replaced(both, batch, steps, package, gradients=False)
        yield replaced(both, batch, steps, f"{package}, training")


def replaced(
    kind: Any,
    batch: int,
    steps: tuple[int, int],
    name: str,
    bar: float | None = None,
    *,
    gradients: bool = True,
    ours: Registered | None = None,
) -> Row:
    """Of the least and the most steps of a sequence; packed if they differ. `ours`: of torch's own layer."""

    def draw() -> tuple[Any, ...]:
        theirs, (least, most) = kind(), steps
        x: Any = torch.randn(most, batch, theirs.input_size)
        if least < most:
            lengths = torch.randint(least, most + 1, (batch,)).tolist()
            x = pack_sequence([x[:length, i] for i, length in enumerate(lengths)], enforce_sorted=False)
        return theirs if ours else it.nn.from_torch(theirs), theirs, x

    peers, bars = {"torch": output}, [Bar("torch", bar, bar)] if bar else []
    return row(name, draw, ours or output, peers, bars, read=norms if gradients else None, tolerance=(1e-4, 1e-3))


def output(layer: Any, x: Any) -> Any:
    found = layer(x)
    return found[0] if isinstance(found, tuple) else found


def norms(layer: Any) -> Results:
    """Of the gradients of the input's and the state's weights."""
    weights = [p for key, p in sorted(layer.named_parameters()) if key.startswith("weight")]
    return {"gradients": torch.stack([p.grad.norm() for p in weights])}
