"""Small runs, and the contents of their folders."""

import csv
import os
import time

TINY = ("--hidden", 6, "--length", 5, "--batch", 3, "--threads", 1)
FILES = {"config.toml", "metrics.csv", "curves.png", "checkpoint.safetensors", "scores.toml"}


def metrics(folder):
    """The rows of metrics.csv as written, without the seconds."""
    with open(folder / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def tensors(folder):
    """The tensors of the checkpoint."""
    from safetensors.torch import load_file

    return load_file(folder / "checkpoint.safetensors")


def contents(folder):
    """Every file with its bytes, a link with its target."""
    return {
        path.relative_to(folder): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def wait(process, folder, rows):
    """Until the run of a process has so many rows."""
    deadline = time.monotonic() + 120
    while not (folder / "metrics.csv").exists() or len(metrics(folder)) < rows:
        assert process.poll() is None and time.monotonic() < deadline, "the run did not go on"
        time.sleep(0.02)


def same_run(one, other):
    """Rows and checkpoints are bitwise equal."""
    assert metrics(one) == metrics(other)
    a, b = tensors(one), tensors(other)
    assert a.keys() == b.keys() and all(a[k].equal(b[k]) for k in a)
