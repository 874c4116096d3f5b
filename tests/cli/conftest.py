"""Pictures that a command has drawn, and comparisons within this process."""

import contextlib
import itertools
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cli_runs import contents
from isometry.cli import main
from isometry.cli.compare.pool import Pool

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def _unpainted(request, monkeypatch):
    """Where the picture is not what is tested a file is written in its place, each with other bytes: to paint one takes
    twenty times as long as a small run.
    """
    if "drawn" not in request.fixturenames:
        count = itertools.count()
        paint = lambda _figure, path, **_: Path(path).write_bytes(PNG + str(next(count)).encode())
        monkeypatch.setattr(Figure, "savefig", paint)


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """drawn(draw) -> the figure that `draw(path)` has saved as a PNG."""
    figures = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), save(self, *a, **k)))

    def call(draw):
        draw(tmp_path / "drawn.png")
        assert (tmp_path / "drawn.png").read_bytes().startswith(PNG)
        return figures[-1]

    return call


@pytest.fixture
def here(monkeypatch):
    """The runs of a comparison are made in this process, one after another."""

    def run(pool, runs):
        with contextlib.redirect_stdout(sys.stderr):
            assert [main(run.command(pool.threads)) for run in runs.values()] == [0] * len(runs)
        return True

    monkeypatch.setattr(Pool, "run", run)


@pytest.fixture
def refused(isometry, tmp_path):
    """refused("train", ...) -> the one line of a command that ends with an error and changes nothing."""

    def call(*arguments, status=2):
        before = contents(tmp_path)
        found, out, err = isometry(*arguments)
        assert (found, out, len(err)) == (status, "", 1), err
        assert contents(tmp_path) == before
        return err[0]

    return call
