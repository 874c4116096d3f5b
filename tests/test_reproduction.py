"""benches/reproduction: it runs what is left and keeps the results; the pages say what the numbers say."""

import re
from functools import cache
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import task_data
from isometry.cli import registry
from subprocesses import ROOT

NAMES = ("cell", "order", "report", "results", "run", "verdicts")


@cache
def scripts():
    """The modules of benches/reproduction, by the end of their names."""
    found = {name: import_module(f"reproduction.{name}") for name in NAMES}
    return SimpleNamespace(**found)


FACTS, CELLS = scripts().cell.FACTS, list(scripts().cell.CELLS)
PAGES = [ROOT / "docs/reproduction.md", *sorted((ROOT / "docs/reproduction").glob("*.md"))]


def test_every_model_has_a_claim_about_known_cells():
    models = registry.names("model")
    assert set(models) <= set(FACTS["claim"])
    for model, claim in FACTS["claim"].items():
        assert all("images" in scripts().cell.CELLS[cell] for cell in claim.get("better", {}))
        than = claim.get("than", {}) | claim.get("better", {})
        named = [*claim.get("learns", ()), *claim.get("fails", ()), *claim.get("than", {}), *claim.get("better", {})]
        assert claim["paper"] and claim["text"] and set(named) <= set(CELLS) and len(set(named)) == len(named), model
        assert {other for others in than.values() for other in others} <= set(models) - {model}


def test_papers_have_one_name():
    """Settings and claims name papers by the keys of one list, the pages by authors and year."""
    verdicts = scripts().verdicts
    papers = registry.papers()["paper"]
    files = (ROOT / "benches/reproduction/cells.toml", ROOT / "python/isometry/cli/papers.toml")
    assert {key for file in files for key in verdicts.KEY.findall(file.read_text())} == set(papers)
    assert verdicts.cited("as in Helfrich2018, 4") == "as in Helfrich et al. 2018, 4"
    assert verdicts.short_name("Lezcano2019") == "Lezcano-Casado and Martínez-Rubio 2019"
    known = {verdicts.short_name(key) for key in papers}
    for page in PAGES:
        text = page.read_text()
        assert not verdicts.KEY.findall(text)
        assert {" ".join(found) for found in re.findall(r"(\w+ et al\.) (\d{4})", text)} <= known


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Small data of the tasks with real ones."""
    task_data.mnist_package(tmp_path / "packages", each=60)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    (tmp_path / "data").mkdir()
    task_data.recordings(tmp_path / "data/recordings", 60)
    task_data.text(tmp_path / "data", 200).rename(tmp_path / "data/bible.txt")
    return tmp_path / "data"


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_is_planned(name, tmp_path, data):
    """A model gets its size, and the options of the cell are the task's."""
    (job,) = scripts().cell.jobs("tiny", [name], ["eurnn" if name == "adding 50" else "lstm"], data)
    assert job.lack is None
    ((_, (run,)),) = scripts().run.planned([job], None, tmp_path, tmp_path)
    assert run.settings["iterations"] == job.updates >= 2
    assert (run.settings | run.settings["task_options"]).items() >= scripts().cell.CELLS[name]["options"].items()
    ((_, (again,)),) = scripts().run.planned([job], None, tmp_path, tmp_path)  # with the size of sizes.json
    assert again.settings == run.settings
    assert f"--hidden {run.settings['hidden']}" in job.command(run.settings["hidden"])


@pytest.mark.slow
def test_runs_go_on_and_are_reported(tmp_path, capfd):
    """The budget interrupts, the same command goes on, a third has nothing to do; the pages need no runs."""
    main, docs = scripts().run.main, tmp_path / "docs"
    folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results"), "--docs", str(docs)]
    command = ["run", "--tier", "tiny", "--models", "lstm", "--cells", "copying 200,permuted digits", "--jobs", "1"]
    assert main([*command, *folders, "--budget", "0"]) == 0
    assert "2 runs to do" in capfd.readouterr().err
    assert not (tmp_path / "results").exists() and not (docs / "reproduction").exists()
    assert main([*command, *folders]) == 0
    err = capfd.readouterr().err
    assert "2 runs to do" in err and "permuted-digits/lstm-0: test loss" in err
    texts = {path: path.read_text() for path in docs.rglob("*.md")}
    assert len(texts) == 3 and re.search(r"^\| LSTM \| ○ \| ○ \|$", texts[docs / "reproduction.md"], re.M)
    digits = texts[docs / "reproduction/digits.md"]
    assert "| LSTM | " in digits and "test accuracy" in digits
    for name in ("copying-200", "permuted-digits"):
        assert (docs / f"figures/reproduction-{name}.png").stat().st_size > 5_000
    assert "--seed 0" in texts[docs / "reproduction/copying.md"]
    assert main([*command, *folders]) == 0 and "0 runs to do" in capfd.readouterr().err
    (tmp_path / "runs").rename(tmp_path / "elsewhere")
    assert main(["report", *folders]) == 0 and {path: path.read_text() for path in docs.rglob("*.md")} == texts
    assert main([*command, *folders]) == 0 and "0 runs to do" in capfd.readouterr().err
    (tmp_path / "results/japanese-vowels.md").write_text("| model | accuracy |\n|---|---|\n| ornn | 97 % |\n")
    assert (
        main(["report", *folders]) == 0 and "| ornn | 97 % |" in (docs / "reproduction/japanese-vowels.md").read_text()
    )


def test_what_is_open_says_what_would_settle_it():
    """A claim that did not come out has a longer run, made or planned, or what was found of the system says why not."""
    verdicts = scripts().verdicts
    results = {cell: scripts().results.entries(cell) for cell in CELLS}
    for model, claim in FACTS["claim"].items():
        for cell in CELLS:
            word, _ = verdicts.verdict(
                cell, claim, verdicts.found(cell, model, results[cell]), verdicts.short(results[cell])
            )
            if not results[cell] or cell in claim.get("better", {}):
                continue  # the cell itself has to be run; an order is settled by more images
            if word in (verdicts.NOT_LEARNT, verdicts.NOT_BETTER, verdicts.NOT_RUN):
                assert scripts().cell.longer_run(cell, model) or cell in claim["found"], (cell, model)


def test_the_pages_are_those_of_the_results():
    for path, text in scripts().report.pages().items():
        assert path.read_text() == text, "run `python benches/reproduction report`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_are_short(page):
    """And no cell of a table holds a paragraph."""
    lines = page.read_text().splitlines()
    cells = [cell for line in lines if line.startswith("|") for cell in re.sub(r"\]\([^)]*\)", "", line).split("|")]
    assert len(lines) <= 400 and max(map(len, cells)) <= 50


def test_intervals_are_those_of_the_bootstrap():
    """Drawn again from the images themselves."""
    order, rng = scripts().order, np.random.default_rng(0)
    for accuracy, count in [(0.9, 500), (0.994, 500), (0.3, 40)]:
        right = np.arange(count) < round(accuracy * count)
        drawn = right[rng.integers(0, count, (20_000, count))].mean(1)
        found = order.interval(accuracy, count)
        assert found == pytest.approx(np.quantile(drawn, (0.025, 0.975)), abs=1.01 / count)
    assert order.interval(1.0, 500) == (1, 1) and order.interval(0.0, 500) == (0, 0)
    assert order.with_interval("pixels", {"accuracy": 0.892}, "accuracy") == "0.892 (0.864 to 0.918)"
