"""Defaults are the papers', and config.toml is read back unchanged."""

import re
import tomllib

import numpy as np
import pytest

from isometry.cli import registry, settings
from isometry.cli.build import blamed, make_layer, make_task
from isometry.cli.errors import UsageError
from isometry.cli.network import Network
from isometry.cli.parser import make_parser
from isometry.cli.resolve import resolve
from task_data import images, recordings, text

TASKS, MODELS = registry.names("task"), registry.names("model")
COPYING = {
    "scornn": {"hidden": 190, "lr": 1e-3, "recurrent_lr": 1e-4, "batch": 20, "length": 1000},
    "scurnn": {"hidden": 130, "lr": 1e-3, "recurrent_lr": 1e-4, "batch": 20, "h0_bound": 0.01},
    "lstm": {"hidden": 68, "lr": 1e-3, "batch": 20},
    "exprnn": {"hidden": 190, "lr": 2e-4, "recurrent_lr": 2e-5},
}
ADDING = {
    "ornn": {"hidden": 128, "lr": 1e-2, "batch": 50, "length": 400, "h0_bound": (3 / 256) ** 0.5},
    "scornn": {"hidden": 170, "lr": 1e-3, "recurrent_lr": 1e-4, "batch": 50},
    "lstm": {"hidden": 60},
}


def resolved(task, model, **options):
    needs_data = {"data": "."} if "pixels" in task else {}
    return resolve({"task": task, "model": model, **needs_data, **options})


@pytest.mark.parametrize(("task", "table"), [("copying", COPYING), ("adding", ADDING)])
def test_defaults_are_the_papers(task, table):
    for model, expected in table.items():
        found = resolved(task, model)
        assert {name: found[name] for name in expected} == expected, model


def test_optimisers_of_the_papers():
    found = resolved("copying", "scornn")
    assert (found["optimizer"], found["recurrent_optimizer"]) == ("rmsprop", "rmsprop")
    found = resolved("adding", "scornn")
    assert (found["optimizer"], found["recurrent_optimizer"]) == ("adam", "rmsprop")
    found = resolved("copying", "scurnn")
    assert (found["phases_optimizer"], found["phases_lr"]) == ("adagrad", 1e-4)
    assert resolved("copying", "lstm")["clip"] == 1.0
    found = resolved("copying", "full-capacity-urnn")
    assert (found["recurrent_optimizer"], found["recurrent_lr"]) == ("cayley-sgd", 1e-3)
    found = resolved("digits", "full-capacity-urnn")
    assert (found["optimizer"], found["recurrent_optimizer"]) == ("rmsprop", "cayley-rmsprop")


def test_keywords_of_the_papers():
    """rho: n/2 for copying and adding up to 200 steps, 7n/10 for longer adding, n/10 for images read in order."""
    assert resolved("copying", "scornn")["layer"]["negative_ones"] == 95
    assert resolved("adding", "scornn", length=200)["layer"]["negative_ones"] == 85
    assert resolved("adding", "scornn", length=750)["layer"]["negative_ones"] == 119
    assert resolved("digits", "scornn")["layer"]["negative_ones"] == 17
    assert resolved("copying", "scornn", hidden=20)["layer"]["negative_ones"] == 10
    assert [resolved("adding", "lstm", length=n)["layer"]["forget_bias"] for n in (200, 400, 750)] == [2.0, 4.0, 0.0]
    assert resolved("copying", "ornn", hidden=6)["layer"]["reflections"] == 6
    assert resolved("permuted-pixels", "scornn")["layer"]["negative_ones"] == 85
    assert resolved("next-frame", "lstm")["layer"]["forget_bias"] == -4.0


def test_keywords_that_a_task_gives_every_model():
    """Nothing but the initial state enters a network that generates a waveform; the model's own tables win."""
    for model in MODELS:
        found = resolved("waveform", model)
        has_it = "trainable_h0" in registry.find("model", model).keywords().defaults
        assert found["layer"].get("trainable_h0", False) is has_it, model
    assert resolved("waveform", "ornn", set=["trainable_h0=false"])["layer"]["trainable_h0"] is False
    assert resolved("copying", "scornn")["layer"]["trainable_h0"] is False
    assert resolved("waveform", "scurnn")["h0_bound"] == 0.01


def test_a_smaller_set_of_images_gets_as_many_epochs(monkeypatch):
    """70 of them: of MNIST's files, and of the digits of an installed package without --data."""
    monkeypatch.setattr("isometry.cli.resolve.missing", lambda *_: None)
    found = [resolve({"task": "pixels", "model": "rnn"} | data) for data in ({"data": "."}, {})]
    assert [run["iterations"] * run["batch"] for run in found] == [70 * 55_000, 70 * 4_000]
    assert [run["evaluate_every"] for run in found] == [1000, 80]


@pytest.mark.parametrize("task", TASKS)
def test_every_model_of_a_task_gets_the_same_number_of_updates(task):
    assert len({resolved(task, model)["iterations"] for model in MODELS}) == 1


def test_the_papers_are_named():
    """Every table of papers.toml has a source, and gives its class nothing that this does not take."""
    for kind in ("task", "model"):
        for name, entry in registry.papers()[kind].items():
            known = registry.find(kind, name).keywords().defaults
            for inner, part in [("", entry), *((k, v) for k, v in entry.items() if isinstance(v, dict))]:
                assert len(part["source"]) > 20, name
                if kind == "task" and inner == "layer":  # keywords of whatever model has them
                    known = registry.find("model", "ornn").keywords().defaults
                plain = {k for k, v in part.items() if not isinstance(v, dict)}
                assert plain <= known.keys() | settings.SETTINGS.keys() | registry.FACTS, name


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", MODELS)
def test_config_reads_back(tmp_path, task, model):
    """For every pair with a name."""
    before = resolved(task, model, seed=7)
    path = tmp_path / "config.toml"
    path.write_text(before.as_toml())
    assert resolve({}, path) == before


def test_an_option_wins_over_a_config_and_this_over_the_papers(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('task = "copying"\nmodel = "scornn"\nlr = 1\nhidden = 30\n[layer]\nnegative_ones = 3\n')
    found = resolve({"hidden": "40", "set": ["nonlinearity=tanh"]}, path)
    assert (found["lr"], found["hidden"], found["batch"]) == (1.0, 40, 20)
    assert (found["layer"]["negative_ones"], found["layer"]["nonlinearity"]) == (3, "tanh")


def test_every_setting_is_an_option():
    """Parser, config.toml and checks read one table."""
    for name in settings.SETTINGS:
        options = make_parser().parse_args(["train", settings.option(name), "x"])
        assert getattr(options, name) == "x"
        if name != "data":
            with pytest.raises(UsageError, match=settings.option(name)):
                resolve({"task": "copying", "model": "rnn", name: "x"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3),
        ("1e-3", 1e-3),
        ("true", True),
        ("False", False),
        ("tanh", "tanh"),
        ('"3"', "3"),
        ("[2, 3]", [2, 3]),
        ("1\nb = 2", "1\nb = 2"),
        ("2020-01-01", "2020-01-01"),
    ],
)
def test_values_of_set(text, expected):
    found = settings.literal(text)
    assert found == expected and type(found) is type(expected)


def test_config_keeps_every_kind_of_value():
    table = {"a": 1, "b": 1e-5, "c": 1e300, "d": True, "e": 'q"\\\n\té', "f": 3.0, "layer": {"x": -0.5, "y": [1, 2]}}
    read = tomllib.loads(settings.Settings(table | {"none": None}).as_toml())
    del read["isometry"]
    assert read == table


ODD = ["x", "''", "[1]", "[true]", "-1", "0", "1.5", "true", "nan", "inf", "-1e300", "9"]


@pytest.mark.parametrize("model", MODELS)
def test_keywords_of_a_layer_with_odd_values(model):
    """They are taken, or the message begins with the keyword's name."""
    for name in registry.find("model", model).keywords().defaults:
        for value in ODD:
            found = resolve({"task": "adding", "model": model, "hidden": "6", "set": [f"{name}={value}"]})
            try:
                layer = make_layer(found, 2)
                with blamed(found, f"--model {model}"):
                    Network(layer, 2, 1, last_only=True)
            except UsageError as error:
                assert re.match(rf"--set {name}\b", str(error)), (name, value, str(error))


@pytest.mark.parametrize("task", TASKS)
def test_keywords_of_a_task_with_odd_values(tmp_path, task):
    """Likewise; of a batch that is drawn, too."""
    data = {
        "characters": text,
        "next-frame": lambda folder: recordings(folder / "r"),
        "pixels": lambda f: images(f / "i"),
    }
    known = registry.find("task", task).keywords()
    taken = known.take(registry.TAKEN)
    given = {"task": task, "model": "rnn", **{name: "3" for name in ("length", "batch") if name in taken}}
    if "data" in taken and task != "waveform":
        given["data"] = str(data[task.removeprefix("permuted-")](tmp_path))
    for name in known.defaults:
        for value in ODD:
            found = resolve(given | {"set": [f"{name}={value}"]})
            try:
                with blamed(found, "TASK"):
                    make_task(found).draw(np.random.default_rng(0))
            except UsageError as error:
                assert re.match(rf"--(set {name}|batch|length)\b", str(error)), (name, value, str(error))


@pytest.mark.parametrize("name", sorted(registry.DECIDED - {"device"}))
@pytest.mark.parametrize("model", ["rnn", "scornn", "torch.nn:GRU"])
def test_keywords_that_the_command_decides(refused, tmp_path, model, name):
    """They are refused by name; a config.toml that holds the value of every run is taken."""
    for value in ("true", "1"):
        assert f"--set {name} is no keyword" in refused("train", "adding", "--model", model, "--set", f"{name}={value}")
    for value, taken in (("false", True), ("true", False)):
        (tmp_path / "c.toml").write_text(f"task = 'adding'\nmodel = '{model}'\n[layer]\n{name} = {value}\n")
        if taken:
            assert name not in resolve({}, tmp_path / "c.toml")["layer"]
        else:
            with pytest.raises(UsageError, match=f"c.toml: {name} is no keyword"):
                resolve({}, tmp_path / "c.toml")


@pytest.mark.parametrize("model", ["rnn", "lstm", "scornn"])
def test_keywords_that_no_layer_takes(refused, model):
    """One that is there for its message alone is refused, and not listed."""
    line = refused("train", "adding", "--model", model, "--set", "output=last")
    assert "--set output is no keyword" in line and ", output" not in line
