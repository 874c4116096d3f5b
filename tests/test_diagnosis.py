"""benches/diagnosis.py: what it measures of networks whose Jacobians are known, and the pages that show it."""

import json
import re

import numpy as np
import pytest
import torch

import diagnosis
import reproduction_diagnosis as pages
from isometry.cli import registry
from isometry.cli.build import as_batch
from isometry.cli.session import prepared
from reproduction_cell import CELLS, FACTS
from reproduction_results import FOLDER
from subprocesses import ROOT

CASE = {"cell": "adding 50", "model": "eurnn", "hidden": 8}


@pytest.fixture
def session():
    with prepared(1):
        yield diagnosis.started(CASE, {})


def test_a_unitary_network_with_an_open_activation_is_linear(session):
    """modReLU with b = 0 is the identity: every singular value is 1, the gradient that of the readout at every step."""
    found = diagnosis.figures(session)
    assert found["distances"] == [2, 12, 24, 37, 49]
    np.testing.assert_allclose(found["singular"], 1, atol=1e-4)
    np.testing.assert_allclose(found["agreement"], 1, atol=1e-3)
    assert found["closed"] == 0 and found["curvature"] < 1e-3
    x, target = as_batch(session.task.draw(np.random.default_rng(diagnosis.SEED)))
    with torch.no_grad():
        errors = (session.network(x) - target).abs().mean()
        expected = float(2 * errors * session.network.readout.weight.norm())
    np.testing.assert_allclose(found["gradient"], expected, rtol=1e-3)


def test_a_closed_network_passes_nothing(session):
    with torch.no_grad():
        session.network.layer.activation_bias_l0.fill_(-9.0)
    found = diagnosis.figures(session)
    assert found["closed"] == 1 and found["norms"] == [0, 0, 0]
    assert set(found["gradient"]) == {0.0} and np.all(np.array(found["singular"]) == 0)
    assert found["agreement"] == [None] * 5 and found["curvature"] is None


def test_a_network_that_multiplies_has_curvature():
    """And copying, which has no marks at half time, has none to measure; its loss is that of every step."""
    with prepared(1):
        found = diagnosis.figures(diagnosis.started(CASE | {"model": "gru"}, {}))
        assert found["curvature"] > 0.01 and len(set(found["gradient"])) == 5
        found = diagnosis.figures(diagnosis.started({"cell": "copying 200", "model": "ornn", "hidden": 6}, {}))
    assert found["curvature"] is None and all(value > 0 for value in found["gradient"])


def test_cases_are_measured_and_drawn(monkeypatch, tmp_path):
    """At the start and after the updates, as they are and with what is changed."""
    monkeypatch.setitem(FACTS, "diagnosis", [CASE | {"instead": {"lr": 1e-3}}])
    file, picture = tmp_path / "a.json", tmp_path / "a.png"
    assert diagnosis.main(["--updates", "2", "--file", str(file), "--picture", str(picture)]) == 0
    entries = json.loads(file.read_text())
    assert [(e["updates"], e["instead"]) for e in entries] == [(0, {}), (2, {}), (0, {"lr": 1e-3}), (2, {"lr": 1e-3})]
    assert entries[0]["gradient"] == entries[2]["gradient"] and entries[1]["gradient"] != entries[3]["gradient"]
    size = picture.stat().st_size
    assert diagnosis.main(["draw", "--file", str(file), "--picture", str(picture)]) == 0
    assert picture.stat().st_size == size > 5_000


def test_the_measurements_are_those_of_the_cases():
    """Every case has a text, and the numbers that stand in results are of its settings."""
    updates = FACTS["diagnosed"]["updates"]
    expected = [
        (case["cell"], case["model"], case["hidden"], change, done)
        for case in FACTS["diagnosis"]
        for change in ([{}, case["instead"]] if "instead" in case else [{}])
        for done in (0, case.get("updates", updates) if change else updates)
    ]
    measured = pages.read(FOLDER)
    assert [(e["cell"], e["model"], e["hidden"], e["instead"], e["updates"]) for e in measured] == expected
    for case in FACTS["diagnosis"]:
        assert case["cell"] in CELLS and case["model"] in registry.names("model") and len(case["text"]) > 100


@pytest.mark.parametrize("task", ["adding", "copying"])
def test_the_page_has_a_row_for_each_measurement(task):
    text = (ROOT / f"docs/reproduction/{task}.md").read_text().partition(f"## {pages.HEADING}")[2]
    rows = re.findall(r"^\| \w.* \|$", text, re.MULTILINE)
    assert len(rows) == len(pages.rows(task, pages.read(FOLDER))) > 0
    assert f"figures/{pages.PICTURE}" in text and text.count("\n**") == len(pages.cases(task))
    assert f"reproduction/{task}.md#why-some-do-not-learn" in (ROOT / "docs/reproduction.md").read_text()


def test_a_case_can_start_elsewhere():
    """At W = 1, or with blanks that change no state."""
    layer = diagnosis.started(
        {"cell": "adding 50", "model": "soft-ornn", "hidden": 8}, {"start": "identity"}
    ).network.layer
    torch.testing.assert_close(layer.recurrent_matrix().detach(), torch.eye(8))
    session = diagnosis.started({"cell": "copying 200", "model": "ornn", "hidden": 8}, {"start": "silent"})
    x, _ = as_batch(session.task.draw(np.random.default_rng(0)))
    blanks = x[12:40]
    with torch.no_grad():
        states = session.network.layer(blanks)[0]
    assert float(blanks[..., 0].min()) == 1
    torch.testing.assert_close(states.norm(dim=-1), states[:1].norm(dim=-1).expand(len(blanks), -1))
