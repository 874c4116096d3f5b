"""Forecasts with their probabilities, as DeepAR makes them: one recurrent layer for many series, and sampled paths.

The layer reads the demand of each hour, and what is known of the next: the demand a day and a week before it, and the
calendar. A Student t distribution of the next demand comes out. A forecast reads two days in one call, then draws 24
hours for 100 paths of all series, one step at a time, inside `cached`. The baseline is seasonal naive: the same hour a
week before, plus the errors that this made in training. The series are made here; the test are the last seven days.

    python examples/forecaster.py [--out FILE.png] [--quick]
"""

import argparse
from time import process_time

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.distributions import StudentT
from torch.nn.functional import softplus

import isometry.torch as it

DAY, WEEK, READ, TRAINED, HOURS = 24, 168, 48, 9 * 168, 10 * 168
SERIES, UNITS, PATHS = 100, 48, 100
LEVELS = torch.tensor([0.1, 0.5, 0.9])


def demand() -> Tensor:
    """Demands (HOURS, SERIES), each divided by its mean: daily peaks, quieter weekends, weather that lasts, noise."""
    hour, weather = torch.arange(HOURS)[:, None], torch.zeros(HOURS, 1)
    peaks = [torch.exp(3 * torch.cos(2 * torch.pi * (hour - at) / DAY) - 3) for at in (8, 13, 19)]
    daily = torch.cat(peaks, 1) @ torch.rand(3, SERIES) + 0.3
    for t in range(1, HOURS):
        weather[t] = 0.98 * weather[t - 1] + 0.06 * torch.randn(())
    noise = torch.rand(SERIES) * weather + 0.2 * torch.rand(SERIES) * torch.randn(HOURS, SERIES)
    z = daily * torch.where(hour // DAY % 7 < 5, 1, torch.rand(SERIES)) * noise.exp()
    return z / z[:TRAINED].mean(0)


def inputs(z: Tensor, now: Tensor, hour: Tensor, series: Tensor) -> Tensor:
    """The demand now, and what is known of the next hour: a day and a week before it, weekend, time of day (..., 6)."""
    angle, weekend = 2 * torch.pi * (hour + 1) / DAY, (hour + 1) // DAY % 7 > 4
    known = [z[hour + 1 - lag, series] for lag in (DAY, WEEK)]
    return torch.stack((now, *known, weekend, angle.sin(), angle.cos()), -1)


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = it.nn.GRU(6, UNITS), nn.Linear(UNITS + 6, 3)

    def next(self, output: Tensor, x: Tensor) -> StudentT:
        """The distribution of the next demand."""
        freedom, middle, scale = self.head(torch.cat((output, x), -1)).unbind(-1)
        return StudentT(2 + softplus(freedom), middle, softplus(scale) + 1e-3)

    @torch.no_grad()
    def sample(self, z: Tensor, first: Tensor, series: Tensor) -> Tensor:
        """Paths (DAY, PATHS, columns) of some series from their first hours on."""
        hour, count = first + torch.arange(-READ, 0)[:, None], len(series)
        state = self.layer(inputs(z, z[hour, series], hour, series)[:-1])[1].repeat(1, PATHS, 1)
        hour, series, before, read, paths = hour[-1].repeat(PATHS), series.repeat(PATHS), state, [], []
        now = z[hour, series]  # a row for every path
        with self.layer.cached():
            for k in range(DAY):
                read.append(inputs(z, now, hour + k, series))
                state = self.layer.step(read[-1], state)
                now = self.next(state[-1], read[-1]).sample()
                paths.append(now)
        whole = self.layer(torch.stack(read)[:, :count], before[:, :count])[1]
        assert torch.allclose(whole, state[:, :count], atol=1e-3)  # steps compute what one call does
        return torch.stack(paths).view(DAY, PATHS, count)


def train(z: Tensor, updates: int) -> Forecaster:
    model, steps = Forecaster(), torch.arange(READ + DAY)[:, None]
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(updates):
        hour, series = steps + torch.randint(WEEK, TRAINED - len(steps), (64,)), torch.randint(SERIES, (64,))
        x = inputs(z, z[hour, series], hour, series)
        optimiser.zero_grad()
        (-model.next(model.layer(x)[0], x).log_prob(z[hour + 1, series]).mean()).backward()
        optimiser.step()
    return model


def main(out: str | None, quick: bool) -> None:
    torch.manual_seed(0)
    z, days = demand(), 1 if quick else 7
    model = train(z, 3 if quick else 400)
    first, series = torch.cartesian_prod(torch.arange(days) * DAY + TRAINED, torch.arange(SERIES)).T
    start, hours = process_time(), first + torch.arange(DAY)[:, None]
    truth, paths = z[hours, series], model.sample(z, first, series)
    print(f"{paths[0].numel():,} paths of {DAY} hours drawn in {process_time() - start:.1f} s of CPU time")
    errors = (z[WEEK:TRAINED] - z[: TRAINED - WEEK]).quantile(LEVELS, 0)
    forecasts = {"GRU": paths.quantile(LEVELS, 1), "seasonal naive": z[hours - WEEK, series] + errors[:, None, series]}
    for name, q in forecasts.items():
        inside, over = (truth > q[0]) & (truth < q[2]), truth - q
        loss = torch.maximum(LEVELS.view(-1, 1, 1) * over, (LEVELS.view(-1, 1, 1) - 1) * over).mean()
        print(f"{name}: {100 * inside.float().mean():.1f} % within the 80 % interval, ", end="")
        print(f"width {(q[2] - q[0]).mean():.3f}, quantile loss {loss:.4f}")
    if out:
        known = z[TRAINED - DAY : TRAINED + DAY].numpy()
        draw(out, known, truth.numpy(), {name: q.numpy() for name, q in forecasts.items()})


def draw(out: str, z, truth, forecasts: dict) -> None:
    upper, lower = (figure := Figure(figsize=(5, 7.2), layout="constrained")).subplots(2, 1)
    for k, (name, q) in enumerate(forecasts.items()):
        upper.fill_between(range(DAY), q[0, :, 0], q[2, :, 0], color=f"C{k}", alpha=0.3, label=f"80 %, {name}")
        lower.plot(range(1, DAY + 1), 100 * ((truth > q[0]) & (truth < q[2])).mean(1), f"C{k}", label=name)
    upper.plot(range(-DAY, DAY), z[:, 0], "k")
    upper.set(xlabel="hour", ylabel="demand of a series / its mean")
    lower.axhline(80, color="0.6", linestyle="--")
    lower.set(xlabel="hours ahead", ylabel="within the 80 % interval, in %")
    upper.legend(frameon=False), lower.legend(frameon=False)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file of the picture; without it, the numbers alone")
    parser.add_argument("--quick", action="store_true", help="3 updates, one day")
    main(**vars(parser.parse_args()))
