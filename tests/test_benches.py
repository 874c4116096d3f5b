"""benches/bench.py: compiled graphs, training, memory and other groups besides those of objects and layers."""

import json
import sys

import numpy as np
import pytest

import bench
import device_calls
import isometry.torch as it
import lines
from harness.row import worst
from rows import gpu_torch, memory, qwen, training
from subprocesses import ROOT, run

BENCH = str(ROOT / "benches/bench.py")


def test_a_row_of_a_group(tmp_path, capsys):
    """In the format of the others, and in the file."""
    file = tmp_path / "out.json"
    assert bench.main(["overhead", "--quick", "--threads", "1", "--json", str(file)]) == 0
    (entry,) = json.loads(file.read_text())["rows"]
    assert entry["group"] == "overhead" and not entry["wrong"] and entry["bars"][0]["peer"] == "empty Function"
    assert entry["row"] in capsys.readouterr().out


def test_a_group_that_there_is_not(tmp_path):
    done = run([sys.executable, BENCH, "everything"], check=False, cwd=tmp_path)
    assert done.returncode == 2 and "overhead" in done.stderr


def test_the_bench_of_a_gpu_that_is_not_there(tmp_path):
    command = [sys.executable, BENCH, "gpu", "--quick"]
    done = run(command, check=False, cwd=tmp_path, ISOMETRY_GPU_ADAPTER="none-such")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("bench: gpu: ")


def test_the_report_of_a_gpu_that_is_not_there(tmp_path):
    command = [sys.executable, str(ROOT / "benches/gpu_report.py"), "--short"]
    done = run(command, check=False, cwd=tmp_path, ISOMETRY_GPU_ADAPTER="none-such")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("gpu-report: ") and len(done.stderr.splitlines()) == 1


def test_what_the_report_times_on_cuda():
    """On the CPU: every function runs, beside torch's."""
    titles = []
    for title, functions in gpu_torch.pairs("cpu", short=True):
        titles.append(title)
        assert "isometry" in functions
        for function in functions.values():
            assert all(bar.isfinite().all() for bar in function())
    assert len(titles) == len(gpu_torch.LAYERS) + 1 + len(gpu_torch.PARAMETRISATIONS)


def test_a_figure_passes_below_its_bound(capsys):
    marks = [memory.Figure("memory", value, "units", 1.1).measured()["bars"][0]["mark"] for value in (1.0, 1.2)]
    assert marks == ["pass", "MISS"] and "at most 1.1" in capsys.readouterr().out


def test_memory_that_cannot_be_measured_is_said_to_be(capsys):
    """No figure is derived from a peak that does not grow, as in a child of a large parent, or is not reported."""
    assert memory.slope(10, 30, 10) == 2
    assert memory.slope(30, 10, 10) is memory.slope(10, 10, 10) is memory.slope(None, 10, 10) is None
    entry = memory.Figure("peak", None, "units", 1.1).measured()
    assert entry["bars"] == [] and capsys.readouterr().out == "peak: not available\n"


def test_the_peak_does_not_know_the_parent():
    """A process started by a large parent has its own peak, above its current memory."""
    ballast = np.ones(100_000_000)
    short, long = (memory.measured("isometry", steps) for steps in (200, 1000))
    del ballast
    if short["peak"] is not None:
        assert memory.slope(short["peak"], long["peak"], 800 * memory.BATCH * memory.N * 4) == pytest.approx(1, abs=0.5)


def test_both_sides_of_a_training_step_compute_the_same():
    (row,) = training.rows()
    found = row.reference()
    for side in (row.ours, *row.peers):
        assert worst(side.results(), found, row.tolerance)[0] <= 1, side.name


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_both_sides_of_a_training_step_of_qwen_compute_the_same(monkeypatch):
    for name, size in {"HIDDEN": 32, "HEADS": 2, "WIDTH": 16, "STEPS": 70}.items():
        monkeypatch.setattr(qwen, name, size)
    (row,) = qwen.rows()
    found = row.reference()
    for side in (row.ours, *row.peers):
        assert worst(side.results(), found, row.tolerance)[0] <= 1, side.name
        side.run()


def test_a_package_that_a_group_lacks(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert bench.main(["qwen"]) == 1
    found = capsys.readouterr().err
    assert "bench: the group qwen needs transformers, which is not installed: pip install transformers" in found


def test_lines_of_code(tmp_path, capsys):
    """Neither blank lines, nor docstrings, nor comments; the tests of a Rust file stand apart."""
    python = '"""Of a\nmodule."""\n\nx = """a\nb"""  # why\n\n# what\ndef f():\n    "doc"\n    return x\n'
    assert lines.python_lines(python) == 4
    assert lines.rust_lines('//! doc\n\nfn f() { // why\n    g("// no comment");\n    /* two\n    lines */\n}\n') == 3
    source = tmp_path / "rust/core/src/lib.rs"
    source.parent.mkdir(parents=True)
    source.write_text("fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n")
    lines.main([str(tmp_path)])
    table = {line[:18].strip(): line.split()[-2:] for line in capsys.readouterr().out.splitlines()[1:]}
    assert table["rust/core"] == ["1", "2"] and table["rust tests"] == ["4", "4"] and table["all"] == ["5", "6"]


@pytest.mark.parametrize(("layer", "calls"), [("ScoRNN", (6, 2)), ("ORNN", (2, 2)), ("URNN", (6, 4)), ("GRU", (6, 7))])
def test_calls_of_a_step_on_another_device(layer, calls):
    """The counts of the README."""
    forward, backward, kept = device_calls.per_step(getattr(it.nn, layer)(device_calls.INPUTS, device_calls.SIZE))
    assert (forward, backward) == calls and kept < {"GRU": 4.5, "URNN": 1.8}.get(layer, 1.5)


WEIGHTS = {"householder": (20, 14, 4.2), "cayley": (30, 14, 5.2), "matrix_exp": (30, 18, 5.7)}


@pytest.mark.parametrize("name", WEIGHTS)
def test_calls_of_a_weight_on_another_device(name):
    *calls, kept = device_calls.of_weight(device_calls.weights()[f"{name}, isometry"])
    assert (*calls, round(kept, 1)) == WEIGHTS[name]


def test_calls_of_the_delta_rule_on_another_device():
    assert device_calls.per_chunk(False) == (2, 7) and device_calls.per_chunk(True) == (3, 10)
