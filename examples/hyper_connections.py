"""Orthogonal hyper-connections: a small language model whose four residual streams are mixed for every token.

A block reads one of the streams and adds its output to all. Before that each token draws a 4 x 4 matrix from what the
block reads, and its streams are mixed by it: a Cayley transform, which is orthogonal (arXiv 2602.18308, 2605.06729);
the identity plus any matrix; or none. The matrices of all tokens are one batched operator. The text is Python's own
documentation, which comes with Python.

    python examples/hyper_connections.py [--out FILE.png] [--quick]
"""

import argparse
import math
import timeit
from pydoc_data.topics import topics
from time import process_time

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, rms_norm, scaled_dot_product_attention

import isometry.torch as it

STREAMS, WIDTH, BLOCKS, LENGTH, BATCH = 4, 32, 4, 64, 32
MIXERS = {  # numbers per token, and the mixed streams
    "none": (0, lambda _, streams: streams),
    "any matrix": (16, lambda p, streams: streams + p.unflatten(-1, (4, 4)) @ streams),
    "orthogonal": (6, lambda p, streams: it.Cayley(p) @ streams),
}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ask, hidden = nn.Linear(WIDTH, 3 * WIDTH), 3 * WIDTH
        self.answer = nn.Sequential(nn.Linear(WIDTH, hidden), nn.GELU(), nn.Linear(hidden, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.ask(x).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)  # four heads
        return self.answer(x + scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, mixer: str, symbols: int) -> None:
        super().__init__()
        count, self.mix = MIXERS[mixer]
        self.embed, self.draws = nn.Embedding(symbols, WIDTH), nn.Parameter(torch.zeros(BLOCKS, WIDTH, count))
        self.blocks, self.readout = nn.ModuleList(Block() for _ in range(BLOCKS)), nn.Linear(WIDTH, symbols)

    def forward(self, text: Tensor) -> Tensor:
        streams = self.embed(text).unsqueeze(-2).expand(-1, -1, STREAMS, -1)
        for k, (block, draw) in enumerate(zip(self.blocks, self.draws, strict=True)):
            x = rms_norm(streams[..., k % STREAMS, :], (WIDTH,))
            streams = self.mix(x @ draw, streams) + block(x).unsqueeze(-2)
        return self.readout(rms_norm(streams.mean(-2), (WIDTH,)))


def train(mixer: str, text: Tensor, updates: int, every: int) -> list[float]:
    """Bits per character of the last tenth of the text, each so many updates."""
    torch.manual_seed(0)
    model, bits, windows = Model(mixer, int(text.max()) + 1), [], text.unfold(0, LENGTH + 1, 1)
    optimiser, trained = torch.optim.Adam(model.parameters(), lr=4e-3), len(text) * 9 // 10
    loss = lambda x: cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
    for k in range(1, updates + 1):
        optimiser.zero_grad()
        loss(windows[torch.randint(trained - LENGTH, (BATCH,))]).backward()
        optimiser.step()
        if k % every == 0:
            bits.append(torch.no_grad()(loss)(windows[trained::400]).item() / math.log(2))
    return bits


def deep(mixer: str, depth: int) -> list[float]:
    """The norm of streams after 0, 1, ... mixers with random numbers; at first it is one."""
    count, mix = MIXERS[mixer]
    streams = [nn.functional.normalize(torch.randn(256, STREAMS, WIDTH), dim=(-2, -1))]
    for _ in range(depth):
        streams.append(mix(0.3 * torch.randn(256, count), streams[-1]))
    return torch.stack(streams).norm(dim=(-2, -1)).mean(-1).tolist()


def compare(count: int) -> None:
    """Prints the time of so many mixers and of their gradients, beside torch.linalg."""
    upper, streams = torch.randn(count, 6, requires_grad=True), torch.randn(count, STREAMS, WIDTH)
    (i, j), eye, basis = torch.triu_indices(4, 4, 1), torch.eye(4), torch.zeros(6, 4, 4)
    basis[range(6), i, j], basis[range(6), j, i] = 1, -1
    skew = lambda: torch.tensordot(upper, basis, 1)
    calls = {
        "it.Cayley": lambda: it.Cayley(upper) @ streams,
        "torch.linalg.solve": lambda: torch.linalg.solve(eye + skew(), eye - skew()) @ streams,
        "it.Exponential": lambda: it.Exponential(upper) @ streams,
        "torch.linalg.matrix_exp": lambda: torch.linalg.matrix_exp(skew()) @ streams,
    }
    found = [call() for call in calls.values()]
    assert torch.allclose(*found[:2], atol=1e-3) and torch.allclose(*found[2:], atol=1e-3)
    for name, call in calls.items():
        seconds = timeit.repeat(lambda call=call: call().sum().backward(), timer=process_time, number=1, repeat=20)
        print(f"{count} mixers forward and backward, {name}: {1000 * min(seconds):.2f} ms of CPU time")


def main(out: str | None, quick: bool) -> None:
    updates, every = (4, 2) if quick else (100, 10)
    text = torch.tensor([ord(symbol) for symbol in "".join(topics.values())]).unique(return_inverse=True)[1]
    upper, lower = (figure := Figure(figsize=(5, 7.2), layout="constrained")).subplots(2, 1)
    for mixer in MIXERS:
        bits, norms = train(mixer, text, updates, every), deep(mixer, 64)
        print(f"{mixer}: {bits[-1]:.3f} bits per character; norm by 64 mixers x {norms[-1]:.6g}", flush=True)
        upper.plot(range(every, updates + 1, every), bits, label=mixer)
        lower.semilogy(norms)
    compare(256 if quick else 4096)
    upper.legend(frameon=False, title="mixer")
    upper.set(xlabel="update", ylabel="bits per character of the test text")
    lower.set(xlabel="mixers in a row", ylabel="norm of the streams")
    if out:
        figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    parser.add_argument("--quick", action="store_true", help="4 updates")
    main(**vars(parser.parse_args()))
