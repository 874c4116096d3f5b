"""benches/study: tasks that need no data train, runs are continued, and the guide picks what scores best."""

import json

import numpy as np
import pytest

from study import guide, run, times
from study.layers import Choice, choices
from study.tasks import ALL, TASKS
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


def test_the_guide(tmp_path, monkeypatch):
    """The mean over the tasks of a kind decides, and over all others for a kind without tasks."""
    scores = {
        "copying": (1.0, 0.5, 0.125, 0.0),
        "adding": (0.8, 0.4, 0.9, 0.0),
        "cue": (0.9, 0.6, 0.125, 0.0),
        "tones": (0.2, 1.0, 0.125, 0.0),
        "brackets": (0.4, 0.9, 0.5, 0.0),
        "position": (0.7, 0.6),
    }
    layers = ("A, tanh", "B", *guide.TORCH)
    file, page = tmp_path / "results.jsonl", tmp_path / "choosing.md"
    with file.open("w", encoding="utf-8") as out:
        for task, of_layers in scores.items():
            for layer, score in zip(layers, of_layers, strict=False):
                for seed in (0, *run.SEEDS):
                    name = f"{task} | {layer} | 0.001 | {seed} | {run.UPDATES if seed else run.QUARTER}"
                    found = {"score": score, "chance": 0.0, "ms": 1.0, "parameters": 1}
                    out.write(json.dumps({"run": name} | found) + "\n")
    page.write_text(f"Before.\n{guide.BEGIN}old\n{guide.END}After.\n", encoding="utf-8")
    monkeypatch.setattr(guide, "TABLES", tmp_path / "RESULTS.md")
    monkeypatch.setattr(guide, "GUIDE", page)
    monkeypatch.setattr(guide, "ACTIVATIONS", {"A": ("tanh",), "B": ("",)})
    monkeypatch.setattr(guide, "TIMES", tmp_path / "times.json")
    guide.TIMES.write_text(json.dumps({"A, tanh": 0.5, "B": 2.0}), encoding="utf-8")
    assert guide.main(["--results", str(file)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Before.\n") and text.endswith("After.\n") and "old" not in text
    first = f"| {TASKS['adding'].kind} (adding, cue) | `A` tanh **0.94 ± 0.00** |"  # the mean of 0.89 and 1
    assert first in text
    assert "On 0 the pick is within 5 points" in text and "**On 1 of the tasks left out, and on 1 of 1" in text
    assert "that no table contains (brackets), torch's GRU or LSTM was better**" in text
    assert "| `A` tanh | 0.77 | 0.50 | 1 |" in text and "After 1,200 updates, 3 seeds:" in text
    assert "| adding | A, tanh | 0.800 | torch GRU | 0.900 | no | yes |" in guide.TABLES.read_text(encoding="utf-8")


def test_the_guide_is_what_the_results_say():
    updates = guide.UPDATES if "After 1,200 updates" in guide.GUIDE.read_text(encoding="utf-8") else guide.QUARTER
    found, part = guide.guide(run.read(), updates)
    assert guide.TABLES.read_text(encoding="utf-8") == found
    page = guide.GUIDE.read_text(encoding="utf-8")
    assert page == guide.placed(page, part)
