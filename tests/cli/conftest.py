"""Runs a command in this process, in an empty folder, and restores the process's settings afterwards."""

import sys

import pytest
import torch
from matplotlib.figure import Figure

from isometry.cli import main


@pytest.fixture
def isometry(tmp_path, monkeypatch, capfd):
    """isometry("train", ...) -> (exit status, standard output, lines on standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    generator = torch.get_rng_state()

    def call(*arguments):
        status = main([str(a) for a in arguments])
        captured = capfd.readouterr()
        return status, captured.out, captured.err.splitlines()

    yield call
    torch.set_rng_state(generator)


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """drawn(draw) -> the figure that `draw(path)` has saved as a PNG."""
    figures = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), save(self, *a, **k)))

    def call(draw):
        draw(tmp_path / "drawn.png")
        assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
        return figures[-1]

    return call
