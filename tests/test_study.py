"""benches/study: tasks that need no data train, runs are continued, and the guide picks what scores best."""

import json

import numpy as np
import pytest

from study import guide, run, times
from study.layers import Choice, choices
from study.tasks import ALL
from study.train import train

GRU = Choice("GRU", "")
MADE = (
    "brackets",
    "position",
    "adding",
    "chirps",
    "copying",
    "counting",
    "crossing",
    "cue",
    "mackey-glass",
    "oscillator",
    "permutations",
    "radio",
)


@pytest.mark.parametrize("name", [*MADE, "tones", "english", "python"])
def test_a_task_trains(name):
    found = train(name, GRU, 1e-3, 0, 2)
    assert 0 <= found["score"] <= 1 and "not finite" not in found
    assert 0 <= ALL[name].make().chance < 1


@pytest.mark.parametrize("layer", ["EURNN", "FullCapacityURNN", "torch LSTM"])
def test_a_layer_learns(layer):
    """A complex one, one that stores W, one of torch."""
    choice = next(choice for choice in choices() if choice.layer == layer)
    assert train("mackey-glass", choice, 5e-3, 0, 40)["score"] > 0.3


def test_what_must_close_next():
    """The targets of `brackets`, by a stack."""
    x, target = ALL["brackets"].make().sequences(np.random.default_rng(0), 50)
    for symbols, wanted in zip(x.argmax(-1).T.tolist(), target.T.tolist(), strict=True):
        stack = []
        for symbol, next_ in zip(symbols, wanted, strict=True):
            if symbol < 3:
                stack.append(symbol)
            else:
                assert stack.pop() == symbol - 3
            assert next_ == (stack[-1] if stack else -100) and len(stack) <= 4


def test_the_time_of_a_layer(monkeypatch, tmp_path):
    monkeypatch.setattr(times, "TIMES", tmp_path / "times.json")
    monkeypatch.setattr(times, "TASKS", ("counting",))
    monkeypatch.setattr(times, "UPDATES", 3)
    monkeypatch.setattr(times, "best", lambda _: [GRU])
    assert times.main([]) == 0
    assert 0 < json.loads(times.TIMES.read_text(encoding="utf-8"))["GRU"] < 10


@pytest.mark.slow
def test_runs_are_continued(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "QUARTER", 1)
    monkeypatch.setattr(run, "UPDATES", 2)
    words = ["--tasks", "counting", "--layers", "GRU", "--processes", "1", "--out", str(tmp_path / "results.jsonl")]
    assert run.main([*words, "--budget", "0"]) == 0 and run.read(tmp_path / "results.jsonl") == {}
    assert run.main(words) == 0
    done = run.read(tmp_path / "results.jsonl")
    assert [name.rsplit(" | ", 1)[1] for name in done] == ["1"] * len(run.RATES) + ["2"] * len(run.SEEDS)
    capsys.readouterr()
    assert run.main(words) == 0 and capsys.readouterr().out == ""


def test_the_guide_is_what_the_results_say():
    updates = guide.UPDATES if "After 1,200 updates" in guide.GUIDE.read_text(encoding="utf-8") else guide.QUARTER
    found, part = guide.guide(run.read(), updates)
    assert guide.TABLES.read_text(encoding="utf-8") == found
    page = guide.GUIDE.read_text(encoding="utf-8")
    assert page == guide.placed(page, part)
