"""Small runs, and the contents of their folders."""

import csv

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
