"""The memory of one long training."""

from __future__ import annotations

import argparse
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from checks.check import Check, Figures, Outcome, kill, python, start, told

TRAINING = ("train", "copying", "--model", "scornn", "--length", "200", "--threads", "1", "--iterations", "100000000")
MINUTES, SAMPLES = 60, 600
GROWTH = 0.02  # the largest, from a tenth of the time to the end, as a share
Sample = tuple[float, float]  # seconds since the first row of metrics.csv, resident MiB


def train(options: argparse.Namespace, _: Figures) -> Outcome:
    """Train for `--minutes` and sample the resident memory; ctrl-C ends the training."""
    seconds = 60 * (options.minutes or MINUTES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open(folder / "printed", "w") as printed:  # a pipe would fill
            process = start(python("-m", "isometry", *TRAINING, "--out", "run"), folder, output=printed)
        try:
            samples = sampled(process, folder / "run/metrics.csv", seconds)
            process.send_signal(signal.SIGINT)
            process.wait(120)
        finally:
            kill(process)
        if process.returncode != 130:
            return Outcome({}, [f"training: {told(process.returncode, (folder / 'printed').read_text())}"])
        last = (folder / "run/metrics.csv").read_text().splitlines()[-1]
    outcome = judged(samples)
    outcome.figures["updates"] = int(last.split(",")[0])
    return outcome


def sampled(process: subprocess.Popen[str], metrics: Path, seconds: float) -> list[Sample]:
    """The samples of a training from its first row on; fewer if it ends before."""
    while process.poll() is None and not metrics.exists():
        time.sleep(0.1)
    began, samples = time.monotonic(), []
    while process.poll() is None and (at := time.monotonic() - began) <= seconds:
        samples.append((at, resident(process.pid)))
        time.sleep(seconds / SAMPLES)
    return samples


def resident(pid: int) -> float:
    """The resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def judged(samples: Sequence[Sample]) -> Outcome:
    """Memory at the start, after a tenth of the time and at the end, and the slope from then on. Growth fails."""
    end = samples[-1][0]
    steady = [(t, m) for t, m in samples if t >= end / 10]
    t0, m0 = (sum(values) / len(steady) for values in zip(*steady, strict=True))
    spread = sum((t - t0) ** 2 for t, _ in steady)
    slope = sum((t - t0) * (m - m0) for t, m in steady) / spread if spread else 0.0
    figures = {
        "minutes": round(end / 60, 1),
        "start": round(samples[0][1], 1),
        "tenth": round(steady[0][1], 1),
        "end": round(samples[-1][1], 1),
        "most": round(max(m for _, m in samples), 1),
        "slope": round(3600 * slope, 2),
    }
    grown = max(slope * 0.9 * end, samples[-1][1] - steady[0][1])
    limit = GROWTH * steady[0][1]
    return Outcome(figures, [f"{grown:.1f} MiB more than after a tenth of the time"] if grown > limit else [])


def row(found: Figures) -> str:
    return (
        f"{found['minutes']:g} minutes, {found['updates']:,} updates; {found['start']:g} MiB at the first update, "
        f"{found['tenth']:g} after a tenth of the time, {found['end']:g} at the end, {found['most']:g} at most; "
        f"slope {found['slope']:+g} MiB an hour"
    )


CHECK = Check(
    "Memory",
    f"`isometry {' '.join(TRAINING[:-2])}` trains without an end, while another process reads its memory. The slope is "
    "that of a least-squares line through the last nine tenths of the time.",
    f"A failure is memory that grows by {GROWTH:.0%} from a tenth of the time to the end, as measured or by the slope.",
    train,
    row,
    ("minutes",),
)
