"""Voice activity: which frames of a recording are speech, read as a whole, and live for 64 streams at once.

The recordings are synthetic: speech is bursts of harmonics, in coloured noise with clicks and hum. torch's own GRU
is trained on whole recordings; `register()` computes it by the kernels of this package. Live, each of 64 rows takes one
frame at a time; where its recording ends, another begins at the next frame, with a state of zero.

    python examples/voice_activity.py [--out FILE.png] [--quick]
"""

import argparse
from statistics import median
from time import process_time

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import isometry.torch as it
from isometry.integrations.torch import register

RATE, HOP, WINDOW, BANDS, UNITS, ROWS = 8000, 80, 240, 20, 64, 64
uniform = lambda low, high: low + (high - low) * float(torch.rand(()))


def record(frames: int) -> tuple[Tensor, Tensor]:
    """Windows of the sound (frames, WINDOW), a frame every 10 ms, and which frames are speech."""
    count, speech = HOP * (frames - 1) + WINDOW, torch.zeros(frames)
    clock, sound = torch.arange(count) / RATE, torch.zeros(count)
    spectrum = torch.fft.rfft(torch.randn(count))
    noise = torch.fft.irfft(spectrum * torch.linspace(0.01, 1, len(spectrum)) ** -uniform(0, 1), count)
    noise = noise / noise.std() + uniform(0, 1) * torch.sin(2 * torch.pi * uniform(60, 300) * clock)
    start = int(uniform(20, 100))
    while start < frames:
        stop = start + int(uniform(20, 100))
        t = clock[HOP * start : HOP * stop]
        pitch = uniform(90, 220) * (1 + 0.1 * torch.sin(uniform(5, 15) * t)) * torch.arange(1.0, 16)[:, None]
        loud = sum(torch.exp(-(((pitch - f) / 150) ** 2)) for f in (uniform(300, 800), uniform(900, 2400)))
        voice = (loud * torch.sin(2 * torch.pi * pitch.cumsum(-1) / RATE)).sum(0) * torch.sin(12 * t).abs()
        sound[HOP * start : HOP * stop] = voice / voice.std()
        speech[start:stop] = 1
        noise[(knock := HOP * int(uniform(0, frames))) : knock + 400] *= 4
        start = stop + int(uniform(20, 100))
    return (10 ** uniform(-0.3, 0.5) * sound + noise).unfold(0, WINDOW, HOP), speech


def features(windows: Tensor) -> Tensor:
    """Logarithms of the energies in BANDS bands."""
    power = torch.fft.rfft(windows * torch.hann_window(WINDOW)).abs().square()[..., 1:]
    return (power.unflatten(-1, (BANDS, -1)).sum(-1) + 1e-3).log() - 5


def main(out: str | None, quick: bool) -> None:
    torch.manual_seed(0)
    updates, count, length = (3, 60, 100) if quick else (150, 400, 1000)
    windows, speech = (torch.stack(parts, 1) for parts in zip(*(record(count) for _ in range(96)), strict=True))
    memory, readout, x = nn.GRU(BANDS, UNITS), nn.Linear(UNITS, 1), features(windows)
    optimiser = torch.optim.Adam([*memory.parameters(), *readout.parameters()], lr=5e-3)
    score = lambda x: readout(memory(x)[0]).squeeze(-1)  # above zero: speech

    def update() -> float:
        start, chosen = process_time(), torch.randperm(x.shape[1])[:32]
        optimiser.zero_grad()
        binary_cross_entropy_with_logits(score(x[:, chosen]), speech[:, chosen]).backward()
        optimiser.step()
        return 1000 * (process_time() - start)

    call = median(update() for _ in range(5))
    with register():
        ours = median(update() for _ in range(updates))
    print(f"an update: torch {call:.1f} ms, registered {ours:.1f} ms of CPU time")

    starts, end = torch.rand(length, ROWS) < 0.004, torch.tensor([length])  # a recording of some 250 frames begins
    starts[0] = True
    rows = [[record(int(k)) for k in torch.diff(row.nonzero().flatten(), append=end)] for row in starts.T]
    streams, truth = (torch.stack([torch.cat([pair[k] for pair in row]) for row in rows], 1) for k in (0, 1))
    layer, ours, theirs, scores, times = it.nn.from_torch(memory), *torch.zeros(2, 1, ROWS, UNITS), [], []
    with torch.no_grad(), layer.cached():
        for windows, begins in zip(streams, starts, strict=True):
            x, ours, theirs = features(windows), *(torch.where(begins[:, None], 0, state) for state in (ours, theirs))
            start, ours = process_time(), layer.step(x, ours)
            middle, theirs = process_time(), memory(x[None], theirs)[1]
            times.append((1000 * (middle - start), 1000 * (process_time() - middle)))
            scores.append(readout(ours[-1]).squeeze(-1))
        whole = [torch.cat([score(features(sound)[:, None])[:, 0] for sound, _ in row]) for row in rows]
        one_call = readout(layer(features(streams), starts=starts)[0]).squeeze(-1)
    scores, whole, energy = torch.stack(scores), torch.stack(whole, 1), streams.square().mean(-1)
    assert torch.allclose(scores, whole, atol=1e-3) and torch.allclose(one_call, whole, atol=1e-3)
    far, other = (scores - whole).abs().max(), ((scores > 0) != (whole > 0)).sum()
    print(
        f"{starts.sum()} recordings live and whole: {other} of {whole.numel():,} decisions differ, scores by {far:.0e}"
    )
    step, call = (median(column) for column in zip(*times, strict=True))
    print(f"a frame of {ROWS} rows: step {step:.3f} ms, a call of torch's GRU {call:.3f} ms")
    right = lambda decisions: 100 * (decisions == truth.bool()).float().mean().item()
    best = max(right(energy > level) for level in torch.linspace(0, 10, 101))
    print(f"frames right: {right(scores > 0):.1f} %; by the best threshold of the energy {best:.1f} %")
    if out:
        draw(out, *(a[:, 0].numpy() for a in (features(streams), scores.sigmoid(), truth)))


def draw(out: str, x, chance, truth) -> None:
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    (upper, lower), seconds = figure.subplots(2, 1, sharex=True), [k * HOP / RATE for k in range(len(x))]
    upper.imshow(x.T, aspect="auto", origin="lower", extent=(0, len(x) * HOP / RATE, 0, RATE / 2000))
    upper.set(ylabel="kHz", title="One of 64 rows; grey: speech")
    lower.fill_between(seconds, truth, step="post", color="0.85")
    lower.plot(seconds, chance)
    lower.set(xlabel="seconds", ylabel="probability of speech")
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    parser.add_argument("--quick", action="store_true", help="3 updates, a second of sound per row")
    main(**vars(parser.parse_args()))
