"""A user's own task and model: the example of the documents, and what a class that lacks something is told."""

import csv
import doctest
import re
import shlex
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import isometry as iso
from cli_runs import FILES, TINY, metrics, tensors
from subprocesses import ROOT, script

DOCUMENT = (ROOT / "docs/api/command-line.md").read_text()


def test_the_example_of_the_documents(isometry, tmp_path):
    """own.py, the command and the session with load_run, as they are printed; the run resumes too."""
    (tmp_path / "own.py").write_text(re.search(r"^```python\n(.*?)^```$", DOCUMENT, re.M | re.S)[1])
    command = re.search(r"^    isometry (train --task own:First .*)$", DOCUMENT, re.M)[1]
    try:
        status, _, err = isometry(*shlex.split(command), "--threads", 1)
        assert (status, err) == (0, [])
        folder = tmp_path / "runs/first-turning-0"
        assert {p.name for p in folder.iterdir()} == FILES
        first, *_, last = metrics(folder)
        assert float(last["right"]) > 0.9 and float(last["loss"]) < 0.5 * float(first["loss"])
        assert float(last["orthogonality_error"]) < 20
        session = re.search(r"^```pycon\n(.*?)^```$", DOCUMENT, re.M | re.S)[1]
        test = doctest.DocTestParser().get_doctest(session, {}, "command-line.md", None, 0)
        assert len(test.examples) > 5 and doctest.DocTestRunner().run(test).failed == 0
        assert isometry("train", "--resume", folder, "--iterations", 210)[0] == 0
        assert metrics(folder)[-1]["iteration"] == "210"
    finally:
        del sys.modules["own"]


def test_a_layer_of_torch_with_a_task_of_ours(isometry, tmp_path):
    assert isometry("train", "copying", "--model", "torch.nn:GRU", *TINY, "--iterations", 2, "--out", "run")[0] == 0
    run = iso.load_run(tmp_path / "run")
    assert type(run.layer) is nn.GRU and run.settings["model"] == "torch.nn:GRU"
    assert np.isnan(run.metrics["orthogonality_error"]).all()


class Noise:
    """A task without anything optional."""

    inputs = outputs = 2

    def draw(self, rng):
        x = rng.standard_normal((4, 3, 2))
        return x, x

    def loss(self, values, target):
        return (values - target).square().mean()


class Plain(nn.Module):
    """A model without anything optional."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.linear = nn.Linear(inputs, hidden)

    def forward(self, x):
        return (self.linear(x),)


def variant(base, **changes):
    return type(base.__name__, (base,), changes)


def scored(**changes):
    return variant(Noise, evaluate=lambda *_: {"gap": 1.0}, **changes)


def no_matrix(_):
    raise RuntimeError("no matrix today")


def test_what_is_optional_may_be_absent(isometry, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Noise=Noise, Plain=Plain))
    options = ("--task", "mine:Noise", "--model", "mine:Plain", "--hidden", 3, "--iterations", 3)
    status, out, err = isometry("train", *options, "--out", "run")
    assert (status, err) == (0, []) and "baseline" not in out and "e(W)" not in out
    assert "batch" not in (tmp_path / "run/config.toml").read_text()
    assert torch.equal(iso.load_run(tmp_path / "run").network(torch.zeros(4, 1, 2)).isnan().any(), torch.tensor(False))


LACKING = {
    "no draw": (variant(Noise, draw=None), Plain, "--task mine:Noise: Noise lacks the method draw"),
    "no loss": (variant(Noise, loss=None, draw=None), Plain, "the method draw and the method loss"),
    "no inputs": (variant(Noise, inputs=None), Plain, "lacks the integer inputs"),
    "no outputs": (variant(Noise, outputs=0), Plain, "--task mine:Noise: outputs of Noise must be >= 1, not 0"),
    "another shape": (variant(Noise, inputs=3), Plain, "draw must give x of shape (T, B, 3), not (4, 3, 2)"),
    "no pair": (variant(Noise, draw=lambda *_: 3), Plain, "--task mine:Noise: draw: "),
    "loss of many": (variant(Noise, loss=lambda _, v, t: v - t), Plain, "tensor of shape ()"),
    "loss cut off": (variant(Noise, loss=lambda _, v, __: v.detach().sum()), Plain, "differentiable"),
    "bad score": (variant(Noise, score=lambda *_: 3), Plain, "--task mine:Noise: score: "),
    "another best": (scored(best=("distance", min)), Plain, "best must be a score of evaluate and min or max"),
    "no choice": (scored(best=("gap",)), Plain, "best must be a score of evaluate and min or max"),
    "bad test": (scored(best=("gap", min), test=lambda *_: 3), Plain, "--task mine:Noise: test: "),
    "no module": (Noise, Noise, "--model mine:Noise: Noise must be a subclass of torch.nn.Module"),
    "no sizes": (Noise, variant(Plain, __init__=lambda _: None), "--model mine:Plain: "),
    "no tuple": (Noise, variant(Plain, forward=lambda _, x: x), "forward must return (states, last)"),
    "other states": (Noise, variant(Plain, forward=lambda _, x: (x[0],)), "not (1, 2)"),
    "no matrix": (Noise, variant(Plain, recurrent_matrix=no_matrix), "recurrent_matrix: RuntimeError: no matrix today"),
}


@pytest.mark.parametrize("name", LACKING)
def test_what_a_class_lacks(refused, monkeypatch, name):
    """Exit status 2 and one line that says it, before anything is written."""
    task, model, said = LACKING[name]
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(**{c.__name__: c for c in (task, model)}))
    options = ("--task", f"mine:{task.__name__}", "--model", f"mine:{model.__name__}", "--hidden", 3)
    assert said in refused("train", *options)


@pytest.mark.parametrize("name", ["loss", "seconds", "right"])
def test_names_of_scores_that_are_columns_already(refused, monkeypatch, name):
    task = variant(Noise, score=lambda *_: {"right": 1.0}, evaluate=lambda *_: {name: 1.0})
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Noise=task))
    line = refused("train", "--task", "mine:Noise", "--model", "rnn", "--hidden", 3)
    assert f"evaluate: the name '{name}' is taken" in line


def test_a_class_that_leaves_with_a_message(isometry, monkeypatch):
    def leaves(*_):
        raise SystemExit("no data folder")

    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Noise=variant(Noise, draw=leaves)))
    status, _, err = isometry("train", "--task", "mine:Noise", "--model", "rnn", "--hidden", 3)
    assert (status, err) == (1, ["isometry: no data folder"])


def test_a_keyword_without_a_default_is_asked_for(isometry, monkeypatch):
    class Scaled(Noise):
        def __init__(self, *, length, scale):
            self.length, self.scale = length, scale

    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Scaled=Scaled))
    options = ("train", "--task", "mine:Scaled", "--model", "rnn", "--hidden", 3, "--iterations", 1)
    assert "--length is missing" in isometry(*options)[2][0]
    assert "--set scale=VALUE is missing" in isometry(*options, "--length", 3)[2][0]
    assert isometry(*options, "--length", 3, "--set", "scale=2")[0] == 0


def test_a_module_that_is_not_there(refused, tmp_path):
    (tmp_path / "broken_module.py").write_text("import nothing_of_this_name\n")
    for module, said in (("no_such_module", "no_such_module"), ("broken_module", "nothing_of_this_name")):
        line = refused("train", "copying", "--model", f"{module}:Cell")
        assert f"--model {module}:Cell" in line and said in line
    assert "math has no class Cell" in refused("train", "copying", "--model", "math:Cell")


SCORES = {"a": 1.0, "b": 2.0, "c": 3.0}


def scoring(batch, held_out=(), best=None):
    """A task with scores of a batch, and on held-out data, in these orders; each has its own value."""
    changes = {"score": lambda *_: {name: SCORES[name] for name in batch}}
    if held_out:
        changes["evaluate"] = lambda *_: {name: SCORES[name] for name in held_out}
    return variant(Noise, **changes, **({} if best is None else {"best": best}))


CHANGES = {
    "one more": (scoring("a"), scoring("ab")),
    "one more, in front": (scoring("b"), scoring("ab")),
    "the first": (scoring(""), scoring("a")),
    "one fewer": (scoring("abc"), scoring("ac")),
    "none": (scoring("a"), scoring("")),
    "another name": (scoring("ab"), scoring("ac")),
    "one more on held-out data": (scoring("a", "b"), scoring("a", "bc")),
    "one fewer on held-out data": (scoring("a", "bc"), scoring("a", "c")),
    "held-out data": (scoring("a"), scoring("a", "b")),
    "another best": (scoring("a", "bc", ("b", min)), scoring("a", "bc", ("c", min))),
    "another choice": (scoring("a", "bc", ("b", min)), scoring("a", "bc", ("b", max))),
    "no best": (scoring("a", "bc", ("b", min)), scoring("a", "bc")),
}
ORDERS = {
    "of a batch": (scoring("abc"), scoring("cab")),
    "on held-out data": (scoring("", "abc"), scoring("", "bca")),
    "of both": (scoring("ab", "c"), scoring("ba", "c")),
}
OWN = ("train", "--task", "mine:Noise", "--model", "rnn", "--hidden", 3, "--threads", 1, "--log-every", 2)


def changed(isometry, monkeypatch, tasks, first, more):
    """The updates of a run, and its end when it goes on to so many with another version of its task."""
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Noise=tasks[0]))
    assert isometry(*OWN, "--iterations", first, "--out", "run")[::2] == (0, [])
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Noise=tasks[1]))
    return lambda: isometry("train", "--resume", "run", "--iterations", more)


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("first", [1, 2, 3])
def test_other_scores_than_the_run_has(isometry, monkeypatch, tmp_path, name, first):
    """Refused before the first update, at the end of a row or within it; the folder is as it was, and goes on."""
    resume = changed(isometry, monkeypatch, CHANGES[name], first, 5)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    status, out, err = resume()
    assert status in (1, 2) and out == "" and len(err) == 1 and ("mine:Noise" in err[0] or "best network" in err[0]), (
        err
    )
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Noise=CHANGES[name][0]))
    assert resume()[::2] == (0, []) and iso.load_run("run").metrics["iteration"][-1] == 5


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("first", [1, 2, 3])
def test_scores_in_another_order(isometry, monkeypatch, name, first):
    """Each stays in its column."""
    assert changed(isometry, monkeypatch, ORDERS[name], first, 5)()[::2] == (0, [])
    found = iso.load_run("run").metrics
    assert all(set(found[score]) == {value} for score, value in SCORES.items())


@pytest.mark.parametrize("method", ["score", "evaluate"])
@pytest.mark.parametrize("names", [["a", "ab"], ["ab", "a"], ["a", "b"], ["ab", "ba"], ["", "a"]])
def test_scores_that_change_within_a_run(isometry, monkeypatch, method, names):
    """By another name the run ends and says so; its rows can be read and go on."""
    calls = []

    def found(*_):
        calls.append(0)
        return {name: SCORES[name] for name in names[len(calls) > 4]}

    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Noise=variant(Noise, **{method: found})))
    status, _, err = isometry(*OWN, "--iterations", 12, "--out", "run")
    metrics_ = iso.load_run("run").metrics
    if set(names[0]) == set(names[1]):
        assert (status, err) == (0, []) and set(metrics_["a"]) == {1.0} and set(metrics_["b"]) == {2.0}
    else:
        assert status == 2 and len(err) == 1 and f"mine:Noise: {method} gave" in err[0]
        assert set(list(metrics_)[5:]) == set(names[0])


def test_what_is_loaded_is_what_was_trained(isometry, tmp_path):
    """Weights bit by bit, every setting of config.toml and every column; torch's generator stays as it is."""
    isometry("train", "copying", "--model", "scurnn", *TINY, "--iterations", 3, "--out", "run")
    before = torch.get_rng_state()
    run = iso.load_run("run")
    assert torch.equal(torch.get_rng_state(), before)
    saved = tensors(tmp_path / "run")
    assert all(torch.equal(value, saved[f"network.layer.{name}"]) for name, value in run.layer.state_dict().items())
    assert not run.layer.training and run.layer.hidden_size == 6
    assert run.settings["hidden"] == 6 and run.settings["layer"]["nonlinearity"] == "modrelu"
    with open(tmp_path / "run/metrics.csv", newline="") as file:
        names, *rows = csv.reader(file)
    assert list(run.metrics) == names
    assert all(np.array_equal(run.metrics[n], [float(row[k]) for row in rows]) for k, n in enumerate(names))
    assert run.network(torch.zeros(25, 2, 10)).shape == (25, 2, 9)


def test_folders_without_a_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="no config.toml"):
        iso.load_run(tmp_path)
    (tmp_path / "config.toml").write_text('model = "scornn"\n')
    with pytest.raises(RuntimeError, match="checkpoint"):
        iso.load_run(tmp_path)


@pytest.mark.parametrize("module", ["torch", "safetensors"])
def test_a_missing_package_is_an_import_error(monkeypatch, tmp_path, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}, .*pip install {module}"):
        iso.load_run(tmp_path)


def test_importing_the_package_imports_no_command_line():
    assert "isometry.cli" not in script("import sys, isometry; isometry.load_run; print(*sys.modules)").split()
