"""Pictures that a command has drawn."""

import pytest
from matplotlib.figure import Figure


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
