"""The programs in benches/ do their work in small, and the pages they write are those of the committed figures."""

import json
import re
import sys

import numpy as np
import pytest
import torch

import bench
import device_calls
import isometry.torch as it
import lines
import reliability
from checks import CHECKS
from harness import report, timing
from harness.figure import Later
from harness.groups import APART, GROUPS, NAMED, NAMES, SHOWN
from harness.row import Bar, Settings, worst
from reproduction import diagnosis
from reproduction.cell import FACTS
from rows import gpu_torch, qwen, training
from rows.torch import sides
from subprocesses import ROOT, run

pytestmark = pytest.mark.slow

BENCH = str(ROOT / "benches/bench.py")
QUICK = Settings(1, quick=True)


# ---------------------------------------------------------------- bench.py


def row(ours=1.0, peer=1.0):
    """A row whose sides multiply by factors; the reference multiplies by one."""
    times = lambda factor: lambda x: factor * x
    draw = lambda: {"x": torch.arange(1.0, 5.0)}
    bars = [Bar("torch", 0.001, 1e6)]
    return sides.row("factors", draw, times(ours), {"torch": times(peer)}, bars, 4.0, reference=times(1.0))


def test_wrong_values_are_reported_and_never_timed(monkeypatch, capsys):
    monkeypatch.setattr(timing.time, "sleep", lambda _: None)
    wrong, other, right = (row(*factors).measured(sides.frame(), QUICK) for factors in ((1.001,), (1, 1.001), (1, 1)))
    assert wrong["wrong"] and "seconds" not in wrong
    assert not other["wrong"] and other["bars"] == []
    assert [bar["mark"] for bar in right["bars"]] == ["pass"]
    out = capsys.readouterr().out
    assert "WRONG" in out and "left out" in out


def test_bench(tmp_path, capfd):
    """The rows asked for: values checked, a line for each, and JSON with the same marks."""
    file = tmp_path / "out.json"
    for group, name in (("small", "small cayley 8"), ("overhead", "")):
        words = [group, "--only", name, "--quick", "--threads", "1", "--json", str(file)]
        assert bench.main(words) == 0
        out, err = capfd.readouterr()
        found = json.loads(file.read_text())
        assert err == "" and found["machine"]["quick"] and len(found["rows"]) == 1
        for entry in found["rows"]:
            assert name in entry["row"]
            assert not entry["wrong"] and entry["row"] in out and entry["bars"][0]["mark"] in ("goal", "pass", "MISS")
    assert bench.main(["small", "--cores", "--only", "cayley", "--quick"]) == 0


def test_every_row_has_a_name_of_its_own_and_a_bar_for_peers_that_it_has():
    """Listing them draws nothing, so that --only costs nothing for the others. Every group is run by its name."""
    rows = [row for group in SHOWN for row in report.rows_of(group, QUICK) if not isinstance(row, Later)]
    assert len({row.name for row in rows}) == len(rows) > 40
    for row in rows:
        peers = [peer.name for peer in row.peers]
        assert row.bars and row.ours.results and any(peer.results for peer in row.peers), row.name
        assert all(0 < bar.bar <= bar.goal and set(bar.peers or peers) <= set(peers) for bar in row.bars), row.name
    assert set(SHOWN) < set(GROUPS) and set(NAMED) < set(NAMES) == {*GROUPS, *APART}
    assert {bench.parsed([name]).group for name in NAMES} == set(NAMES)


def agree(row):
    found = row.reference()
    for side in (row.ours, *row.peers):
        assert set(side.results()) == set(found) and worst(side.results(), found, row.tolerance)[0] <= 1, side.name


def test_both_sides_of_a_training_step_compute_the_same():
    (row,) = training.rows()
    agree(row)


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_both_sides_of_a_training_step_of_qwen_compute_the_same(monkeypatch):
    for name, size in {"HIDDEN": 32, "HEADS": 2, "WIDTH": 16, "STEPS": 70}.items():
        monkeypatch.setattr(qwen, name, size)
    (row,) = qwen.rows()
    agree(row)


def test_arguments_that_bench_refuses(monkeypatch, capfd):
    for arguments in (["everything"], ["small", "--threads", "2000"]):
        with pytest.raises(SystemExit, match="2"):
            bench.main(arguments)
        assert arguments[-1] in capfd.readouterr().err
    assert bench.main(["small", "--quick", "--only", "large"]) == bench.main(["numpy", "--cores"]) == 2
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert bench.main(["qwen"]) == 1 and "pip install transformers" in capfd.readouterr().err


@pytest.mark.parametrize("command", [("bench.py", "gpu", "--quick"), ("gpu_report.py", "--short")], ids=lambda c: c[0])
def test_a_gpu_that_is_not_there(tmp_path, command):
    words = [sys.executable, str(ROOT / "benches" / command[0]), *command[1:]]
    done = run(words, check=False, cwd=tmp_path, ISOMETRY_GPU_ADAPTER="none-such")
    assert done.returncode == 1 and re.fullmatch(r"(bench: gpu|gpu-report): .*\n", done.stderr), done.stderr


def test_what_the_report_times_on_cuda():
    """On the CPU: every function runs, beside torch's."""
    for _, functions in gpu_torch.pairs("cpu", short=True):
        assert "isometry" in functions
        assert all(bar.isfinite().all() for function in functions.values() for bar in function())


HIDING = """
import sys
from importlib.machinery import PathFinder
class Others(PathFinder):
    @classmethod
    def find_spec(cls, name, *rest):
        return None if name.partition(".")[0] in ("torch", "scipy") else super().find_spec(name, *rest)
sys.meta_path[sys.meta_path.index(PathFinder)] = Others
"""


def test_bench_numpy_needs_neither_torch_nor_scipy(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HIDING)
    paths = {"PYTHONPATH": f"{tmp_path}:{':'.join(p for p in sys.path if p)}"}
    options = ["--quick", "--threads", "1", "--only", "small", "--json", "out.json"]
    out = run([sys.executable, BENCH, "numpy", *options], cwd=tmp_path, **paths)
    assert "scipy is not installed" in out and "torch" not in out
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert len(rows) > 1 and not any(entry["wrong"] for entry in rows)
    done = run([sys.executable, BENCH, "small"], cwd=tmp_path, check=False, **paths)
    assert done.returncode == 1 and "needs torch" in done.stderr


# ---------------------------------------------------------------- the programs beside it


def test_lines_of_code(tmp_path, capsys):
    """Neither blank lines, nor docstrings, nor comments; the tests of a Rust file stand apart."""
    python = '"""Of a\nmodule."""\n\nx = """a\nb"""  # why\n\n# what\ndef f():\n    "doc"\n    return x\n'
    assert lines.python_lines(python) == 4
    source = tmp_path / "rust/core/src/lib.rs"
    source.parent.mkdir(parents=True)
    source.write_text("//! doc\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n")
    lines.main([str(tmp_path)])
    table = {line[:18].strip(): line.split()[-2:] for line in capsys.readouterr().out.splitlines()[1:]}
    assert table["rust/core"] == ["1", "3"] and table["rust tests"] == ["4", "4"] and table["all"] == ["5", "7"]


@pytest.mark.parametrize(("layer", "calls"), [("ScoRNN", (5, 3)), ("ORNN", (2, 2)), ("URNN", (6, 4)), ("GRU", (6, 7))])
def test_calls_of_a_step_on_another_device(layer, calls):
    """The counts of benches/measurements.md."""
    forward, backward, kept = device_calls.per_step(getattr(it.nn, layer)(device_calls.INPUTS, device_calls.SIZE))
    assert (forward, backward) == calls and kept < {"GRU": 4.5, "URNN": 1.8}.get(layer, 1.5)


WEIGHTS = {"householder": (19, 14, 4.2), "cayley": (30, 14, 5.2), "matrix_exp": (30, 18, 5.7)}


@pytest.mark.parametrize("name", WEIGHTS)
def test_calls_of_a_weight_on_another_device(name):
    *calls, kept = device_calls.of_weight(device_calls.weights()[f"{name}, isometry"])
    assert (*calls, round(kept, 1)) == WEIGHTS[name]


# ---------------------------------------------------------------- reliability.py


def test_the_page_is_that_of_the_figures():
    entries = json.loads(reliability.FIGURES.read_text())
    assert entries.keys() == CHECKS.keys()
    assert reliability.page(entries) == reliability.PAGE.read_text(), "run `benches/reliability.py --page`"


def test_a_check_goes_on_alone(tmp_path):
    """The fuzz goes on where it ended; its figures are on the page."""
    file, page = tmp_path / "figures.json", tmp_path / "page.md"
    begun = json.loads(reliability.FIGURES.read_text())["fuzz"]
    begun |= {"figures": {"calls": {"numpy": 1000}, "reached": 1000, "wrong": []}, "failures": []}
    file.write_text(json.dumps({"fuzz": begun}))
    assert reliability.main(["fuzz", "--calls", "1020", "--json", str(file), "--out", str(page)]) == 0
    found = json.loads(file.read_text())["fuzz"]
    assert found["figures"]["reached"] == sum(found["figures"]["calls"].values()) == 1020 and found["failures"] == []
    assert "1,020 calls" in page.read_text()


# ---------------------------------------------------------------- diagnosis.py


def test_cases_are_measured_and_drawn(monkeypatch, tmp_path):
    """At the start and after the updates; a unitary network with an open activation has singular values of 1."""
    case = {"cell": "adding 50", "model": "eurnn", "hidden": 8}
    monkeypatch.setitem(FACTS, "diagnosis", [case | {"instead": {"lr": 1e-3}}])
    file, picture = tmp_path / "a.json", tmp_path / "a.png"
    assert diagnosis.main(["--updates", "2", "--file", str(file), "--picture", str(picture)]) == 0
    entries = json.loads(file.read_text())
    assert [(e["updates"], e["instead"]) for e in entries] == [(0, {}), (2, {}), (0, {"lr": 1e-3}), (2, {"lr": 1e-3})]
    np.testing.assert_allclose(entries[0]["singular"], 1, atol=1e-4)
    assert picture.stat().st_size > 5_000


def test_the_measurements_are_those_of_the_cases():
    """Every case has numbers in the results, of its settings."""
    updates = FACTS["diagnosed"]["updates"]
    expected = [
        (case["cell"], case["model"], case["hidden"], change, done)
        for case in FACTS["diagnosis"]
        for change in ([{}, case["instead"]] if "instead" in case else [{}])
        for done in (0, case.get("updates", updates) if change else updates)
    ]
    measured = json.loads(diagnosis.FILE.read_text(encoding="utf-8"))
    assert [(e["cell"], e["model"], e["hidden"], e["instead"], e["updates"]) for e in measured] == expected
