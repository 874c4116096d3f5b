"""benches/reproduction.py: it runs what is left, and the report says of the claims what the numbers say."""

import sys
from functools import cache
from types import SimpleNamespace

import pytest

from isometry.cli import registry
from subprocesses import ROOT


@cache
def scripts():
    """benches/reproduction.py and reproduction_report.py as modules."""
    sys.path.insert(0, str(ROOT / "benches"))
    try:
        import reproduction
        import reproduction_report
    finally:
        sys.path.remove(str(ROOT / "benches"))
    return reproduction, reproduction_report


FACTS = scripts()[0].FACTS
CELLS = [cell["name"] for cell in FACTS["cell"]]


def test_every_model_has_a_claim_about_known_cells():
    assert set(registry.names("model")) <= set(FACTS["claim"])
    for model, claim in FACTS["claim"].items():
        named = [*claim.get("learns", ()), *claim.get("fails", ())]
        assert claim["paper"] and claim["text"] and set(named) <= set(CELLS) and len(set(named)) == len(named), model


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_of_every_tier_is_planned(name, tmp_path):
    """A model gets its size, and the options of the cell are the task's."""
    reproduction, _ = scripts()
    options = SimpleNamespace(tier="tiny", cells=[name], models=["scornn"])
    (cell,) = reproduction.planned(options, tmp_path)
    assert cell.missing == {}
    (run,) = cell.runs["scornn"]
    assert run.settings["iterations"] == cell.updates >= 2
    assert (run.settings | run.settings["task_options"]).items() >= cell.facts["options"].items()
    (again,) = reproduction.planned(options, tmp_path)  # with the size of sizes.json
    assert again.runs["scornn"][0].settings == run.settings


def test_runs_go_on_and_are_reported(tmp_path, capfd):
    """The budget interrupts, the same command goes on, a third one has nothing to do; pages and pictures are whole."""
    reproduction, _ = scripts()
    common = ["--tier", "tiny", "--models", "lstm", "--cells", "copying 200,permuted digits", "--jobs", "1"]
    command = [*common, "--runs", str(tmp_path), "--docs", str(tmp_path / "docs")]
    assert reproduction.main([*command, "--budget", "0"]) == 0
    assert "2 runs to do" in capfd.readouterr().err
    assert "lstm | Stays at the baseline" in (tmp_path / "docs/reproduction.md").read_text()
    assert reproduction.main(command) == 0
    err = capfd.readouterr().err
    assert "2 runs to do" in err and "permuted-digits/lstm-0: test loss" in err
    text = (tmp_path / "docs/reproduction.md").read_text()
    assert "not learnt, nor claimed: copying 200, permuted digits" in text and "permuted digits: accuracy" in text
    assert "not run: adding" not in text and "## Left out" not in text
    for name in ("copying-200", "permuted-digits"):
        assert f"(figures/reproduction-{name}.png)" in text
        assert (tmp_path / f"docs/figures/reproduction-{name}.png").stat().st_size > 10_000
    assert reproduction.main([*command, "--report"]) == 0
    assert (tmp_path / "docs/reproduction.md").read_text() == text and "Real data" not in text
    (tmp_path / "reproduction-tiny/japanese-vowels.md").write_text("| model | accuracy |\n|---|---|\n| ornn | 97 % |\n")
    assert reproduction.main([*command, "--report"]) == 0
    assert "| ornn | 97 % |" in (tmp_path / "docs/reproduction.md").read_text()
    assert reproduction.main(command) == 0 and "0 runs to do" in capfd.readouterr().err


def run(loss, done=10):
    return SimpleNamespace(
        final={"loss": loss}.get, columns={"baseline": [1.0], "name": [loss]}, done=done, settings={"iterations": 10}
    )


def test_words_follow_from_the_numbers():
    """Of four cells: claimed and learnt by some seeds, claimed and not, denied and learnt, neither; one not run."""
    _, report = scripts()
    cells = [SimpleNamespace(name=name, facts={"learnt": 0.5}) for name in "abcde"]
    claim = {"learns": ["a", "b", "e"], "fails": ["c"]}
    own = {
        "a": SimpleNamespace(runs=[run(0.1), run(0.6), run(0.4)]),
        "b": SimpleNamespace(runs=[run(0.5), run(0.9)]),
        "c": SimpleNamespace(runs=[run(0.2)]),
        "d": SimpleNamespace(runs=[run(1.0, done=5)]),
    }
    assert report._word(cells, own, claim) == (
        "as claimed: a (2 of 3 seeds); claimed, but not learnt within these updates: b; "
        "learnt, against the reports: c; not learnt, nor claimed: d (unfinished); not run: e"
    )
