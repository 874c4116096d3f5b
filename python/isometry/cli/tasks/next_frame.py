"""Next frame: predict a frame of a logarithmic spectrogram from those before it; sequences of different lengths.

Audio at 8 kHz: the WAV files in a folder and those below it, `--data` (TIMIT's too), or some that the program makes.
Recordings longer than `length` frames are cut into sequences. Inputs and outputs of the network are features less their
mean, in units of their standard deviation (both from the training data); loss and scores are mean squared errors of the
features themselves, over the frames that a sequence has. Baselines: the last frame again, the mean frame.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

import isometry
from isometry._rules import check, check_tasks
from isometry.cli.tasks.recordings import Recording, paths, split

STEPS_AT_ONCE = 20_000  # of all sequences of an evaluation together


class NextFrame:
    best: ClassVar = ("valid_mse", min)
    title = "Next-frame prediction"

    def __init__(
        self,
        *,
        batch: int,
        length: int,
        data: str | None = None,
        window: int = 256,
        hop: int = 128,
        scale: float = 10 / math.log(10),
        floor: float = 1e-5,
    ) -> None:
        window, hop = check_tasks.even("window", window), check.count("hop", hop, 1)
        options = {"window": window, "hop": hop, "scale": scale, "floor": floor}
        parts = split(data)
        files = [] if data is None else paths(data)
        copies = len(files) - sum(map(len, parts))
        self.note = f"{copies} of {len(files)} recordings are left out: copies of others" if copies > 0 else ""
        self.training, self.validation, self.test_part = (self._sequences(part, length, options) for part in parts)
        if batch > len(self.training):
            raise ValueError(
                f"batch must be at most {len(self.training)}, the number of sequences to train on, not {batch}"
            )
        self.batch = batch
        frames = np.concatenate(self.training)
        self.inputs = self.outputs = frames.shape[1]
        self.mean = torch.from_numpy(frames.mean(0, dtype=np.float64)).float()
        self.deviation = float((frames - self.mean.numpy()).std(dtype=np.float64)) or 1.0
        last, mean = (self._over(self.test_part, guess) for guess in (lambda x: x, lambda x: 0 * x))
        self.baseline = last
        self.baselines = {"the last frame again": last, "the mean frame": mean}

    @staticmethod
    def _sequences(recordings: Sequence[Recording], length: int, options: dict[str, Any]) -> list[np.ndarray]:
        """Features (frames, bins) of at most length + 1 frames: the last one is only a target."""
        found = []
        for name, audio in recordings:
            if audio.size < options["window"] + options["hop"]:
                raise ValueError(f"data {name} has {audio.size} samples at 8 kHz, too few for two frames")
            frames = isometry.tasks.spectrogram(audio, **options).astype(np.float32)
            found += [frames[k : k + length + 1] for k in range(0, len(frames) - 1, length)]
        return found

    def _batch(self, sequences: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
        """Padded inputs, and targets that are NaN past the end of a sequence."""
        steps = max(map(len, sequences)) - 1
        x = torch.zeros(steps, len(sequences), self.inputs)
        target = torch.full_like(x, math.nan)
        for b, sequence in enumerate(sequences):
            frames = torch.from_numpy(sequence)
            x[: len(frames) - 1, b] = (frames[:-1] - self.mean) / self.deviation
            target[: len(frames) - 1, b] = frames[1:]
        return x, target

    def draw(self, rng: Any) -> tuple[Tensor, Tensor]:
        return self._batch([self.training[k] for k in rng.choice(len(self.training), self.batch, replace=False)])

    def loss(self, values: Tensor, target: Tensor) -> Tensor:
        inside = ~target.isnan()
        return (self.mean.to(values.device) + self.deviation * values - target)[inside].square().mean()

    def evaluate(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return {"valid_mse": self._over(self.validation, network)}

    def test(self, network: Callable[[Tensor], Tensor]) -> dict[str, float]:
        return {"mse": self._over(self.test_part, network)}

    def _over(self, sequences: Sequence[np.ndarray], network: Callable[[Tensor], Tensor]) -> float:
        """The loss over all frames, some sequences of similar lengths at a time."""
        ordered = sorted(sequences, key=len)
        some = max(1, STEPS_AT_ONCE // len(ordered[-1]))
        total, count = 0.0, 0
        for k in range(0, len(ordered), some):
            x, target = self._batch(ordered[k : k + some])
            entries = int((~target.isnan()).sum())
            total += entries * self.loss(network(x), target).item()
            count += entries
        return total / count
