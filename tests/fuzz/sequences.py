"""Characters, waveforms, spectrograms and the errors of sequences: tasks and measures of the NumPy face."""

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Numbers
from fuzz.measures import source, task


def sequences(choices, face):
    makers = (characters, waveform, random_waveform, spectrogram, nmse, masked_mse)
    return draw.finished(choices, face, choices.of(makers)(choices, face))


def real(*shape, **keywords):
    """A real array of any precision, exactly of this shape."""
    return draw.exactly(shape, real=True, precision=False, **keywords)


def numbers(choices, face, *shape):
    """Random ones: a signal of zeros, or of equal numbers, is refused."""
    return ref.normal(choices.rng, *shape, dtype=draw.Types(choices, face).pick(real=True))


def characters(choices, face):
    classes, steps, batch = choices.between(1, 5), choices.between(2, 7), choices.between(0, 3)
    k = choices.between(1, steps - 1)
    ids = choices.rng.integers(0, classes, (steps, batch)).astype(choices.of(draw.INTEGERS))
    x = np.zeros((steps - k, batch, classes))
    for t in range(steps - k):
        for b in range(batch):
            x[t, b, ids[t, b]] = 1
    call = task("tasks.characters", {"ids": ids, "k": k, "classes": classes}, x, np.array(ids[k:], np.int64))
    call.sizes = {"classes": classes}
    call.options = ("ids", "classes") if batch else ("classes",)  # k has the table of another function's k
    return call


def sines(f, a, psi, length, rate):
    y = np.array([sum(a * np.sin(2 * np.pi * f * t / rate + psi)) for t in range(length)])
    return (y / np.abs(y).max())[:, None, None]


def waveform(choices, face):
    partials, length, rate = choices.between(1, 4), choices.between(1, 9), choices.of((1.0, 7.5, 3))
    given = {name: numbers(choices, face, partials) for name in ("frequencies", "amplitudes", "phases")}
    wide = [ref.wide(a) for a in given.values()]
    y = sines(*wide, length, rate)
    # The largest of few samples may be small beside the amplitudes.
    loudest = np.abs(np.sin(2 * np.pi * np.outer(np.arange(length), wide[0]) / rate + wide[2]) @ wide[1]).max()
    precise = tol.forward(np.float64, 40 * np.abs(wide[1]).sum() / loudest)
    sites = {name: real(partials) for name in ("amplitudes", "phases")}
    return task("tasks.waveform", {**given, "length": length, "rate": rate}, y, bound=precise, sites=sites)


def random_waveform(choices, face):
    rng, draws = source(choices)
    partials, length, rate = choices.between(1, 4), choices.between(2, 9), choices.of((900.0, 4000))
    f, a, psi = draws.uniform(60, 400), draws.uniform(0.2, 1, partials), draws.uniform(-np.pi, np.pi, partials)
    y = sines(f * np.arange(1, partials + 1), a, psi, length, rate)
    given = {"rng": rng, "length": length, "rate": rate, "partials": partials}
    return task("tasks.random_waveform", given, y, bound=tol.forward(np.float64, 400))


def spectrogram(choices, face):
    window, hop = 2 * choices.between(1, 4), choices.between(1, 9)
    scale, floor = choices.of((1, 0.5)), choices.of((1.0, 0.1))
    audio = numbers(choices, face, window + choices.between(0, 12))
    wide, j = ref.wide(audio), np.arange(window)
    dft = np.exp(-2j * np.pi * np.outer(np.arange(window // 2 + 1), j) / window) * (
        0.5 - 0.5 * np.cos(2 * np.pi * j / window)
    )
    frames = np.array([wide[k : k + window] for k in range(0, audio.size - window + 1, hop)])
    value = scale * np.log(np.abs(frames @ dft.T) ** 2 + floor)
    given = {"audio": audio, "window": window, "hop": hop, "scale": scale, "floor": floor}
    sites = {"audio": Numbers(1, lambda s: len(s) == 1 and s[0] >= window, real=True, precision=False)}
    own = {"bound": tol.forward(np.float64, 10 * window), "floor": np.sqrt(value.size)}
    return task("tasks.spectrogram", given, value, sites=sites, **own)


def pair(choices, face, shape):
    return {name: numbers(choices, face, *shape) for name in ("output", "target")}


def precise(given):
    """A sum of so many squares of differences."""
    return tol.forward(np.float64, 4 * given["output"].size)


def nmse(choices, face):
    shape = tuple(choices.between(1, 3) for _ in range(choices.between(1, 3)))
    given = pair(choices, face, (*shape, 2))
    normaliser = choices.of(("variance", "power"))
    o, y = map(ref.wide, given.values())
    value = np.square(o - y).mean() / np.square(y - (y.mean() if normaliser == "variance" else 0)).mean()
    given_too = {"normaliser": normaliser} if normaliser == "power" or choices.once_in(2) else {}
    own = {"bound": precise(given), "sites": {"output": real(*shape, 2)}, "more": ("normaliser",)}
    return task("metrics.nmse", {**given, **given_too}, value, **own)


def masked_mse(choices, face):
    steps, batch, features = choices.between(1, 4), choices.between(1, 3), choices.between(1, 3)
    given = pair(choices, face, (steps, batch, features))
    lengths = choices.rng.integers(1, steps + 1, batch).astype(choices.of(draw.INTEGERS))
    o, y = map(ref.wide, given.values())
    total = sum(np.square((o - y)[: lengths[b], b]).sum() for b in range(batch))
    value = np.asarray(total / (features * int(lengths.sum())))
    own = {"sites": {"output": real(steps, batch, features)}, "sizes": {"B": batch, "T": steps}}
    return task("metrics.masked_mse", {**given, "lengths": lengths}, value, bound=precise(given), **own)
