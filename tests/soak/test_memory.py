"""The memory of one long training."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from subprocesses import environment

TRAINING = ("train", "copying", "--model", "scornn", "--length", "200", "--threads", "1", "--iterations", "100000000")
SAMPLES = 600
GROWTH = 0.02  # the largest, from a tenth of the time to the end, as a share


@pytest.mark.long
@pytest.mark.timeout(8 * 3600)
def test_a_training_keeps_its_memory(tmp_path, sizes, figures):
    """Train for `minutes` and sample the resident memory; ctrl-C ends the training."""
    command, metrics = [sys.executable, "-m", "isometry", *TRAINING, "--out", "run"], tmp_path / "run/metrics.csv"
    with open(tmp_path / "printed", "w") as printed:  # a pipe would fill
        process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=printed, stderr=printed)
    try:
        samples = sampled(process, metrics, 60 * sizes.minutes)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130, (tmp_path / "printed").read_text()
    finally:
        process.kill()
    found, grown, limit = judged(samples)
    figures.update(found, updates=int(metrics.read_text().splitlines()[-1].split(",")[0]))
    assert figures["updates"] > 1
    assert grown <= limit, f"{grown:.1f} MiB more than after a tenth of the time"


def sampled(process, metrics, seconds):
    """(Seconds since the first row of metrics.csv, resident MiB) of a training; fewer if it ends before the time."""
    while process.poll() is None and not metrics.exists():
        time.sleep(0.1)
    began, samples = time.monotonic(), []
    while process.poll() is None and (at := time.monotonic() - began) <= seconds:
        status = Path(f"/proc/{process.pid}/status").read_text()
        samples.append((at, int(status.partition("VmRSS:")[2].split()[0]) / 1024))
        time.sleep(seconds / SAMPLES)
    return samples


def judged(samples):
    """Memory at the start, after a tenth of the time and at the end, and the slope from then on; the growth, and the
    largest that is let pass.
    """
    end = samples[-1][0]
    steady = [(t, m) for t, m in samples if t >= end / 10]
    t0, m0 = (sum(values) / len(steady) for values in zip(*steady, strict=True))
    spread = sum((t - t0) ** 2 for t, _ in steady)
    slope = sum((t - t0) * (m - m0) for t, m in steady) / spread if spread else 0.0
    found = {
        "minutes": round(end / 60, 1),
        "start": round(samples[0][1], 1),
        "tenth": round(steady[0][1], 1),
        "end": round(samples[-1][1], 1),
        "most": round(max(m for _, m in samples), 1),
        "slope": round(3600 * slope, 2),
    }
    return found, max(slope * 0.9 * end, samples[-1][1] - steady[0][1]), GROWTH * steady[0][1]
