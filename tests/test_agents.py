"""Recurrent agents of other packages: every block of docs/agents.md, and both sides of the rows of the bench."""

import other_packages
from rows import agents
from subprocesses import ROOT
from test_examples import test_documents as run_blocks
from test_tools import agree

pytestmark = other_packages.MARKS


def test_the_guide(tmp_path, monkeypatch):
    run_blocks(ROOT / "docs/agents.md", tmp_path, monkeypatch)


def test_both_sides_of_the_rows_compute_the_same(monkeypatch):
    for name, size in {"HIDDEN": 8, "STEPS": 16, "BATCH": 3, "UNITS": 5}.items():
        monkeypatch.setattr(agents, name, size)
    found = list(agents.rows())
    assert len(found) == 6 and len({row.name for row in found}) == 6
    for row in found:
        agree(row)
