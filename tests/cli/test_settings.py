"""Defaults are the papers', and config.toml is read back unchanged."""

import argparse
import math

import pytest

from isometry.cli import models, settings, tasks, toml

COPYING = {
    "scornn": {"hidden": 190, "lr": 1e-3, "recurrent_lr": 1e-4, "batch": 20, "length": 1000},
    "scurnn": {"hidden": 130, "lr": 1e-3, "recurrent_lr": 1e-4, "batch": 20},
    "lstm": {"hidden": 68, "lr": 1e-3, "batch": 20},
}
ADDING = {
    "ornn": {"hidden": 128, "lr": 1e-2, "batch": 50, "length": 400},
    "scornn": {"hidden": 170, "lr": 1e-3, "recurrent_lr": 1e-4, "batch": 50},
    "lstm": {"hidden": 60},
}


def resolved(task, model, **options):
    return settings.resolve(argparse.Namespace(task=task, model=model, assignments=[], **options))


@pytest.mark.parametrize(("task", "table"), [("copying", COPYING), ("adding", ADDING)])
def test_defaults_are_the_papers(task, table):
    for model, expected in table.items():
        found = resolved(task, model)
        assert {name: getattr(found, name) for name in expected} == expected, model


def test_optimisers_of_the_papers():
    found = resolved("copying", "scornn").training
    assert (found["optimizer"], found["recurrent_optimizer"]) == ("rmsprop", "rmsprop")
    found = resolved("adding", "scornn").training
    assert (found["optimizer"], found["recurrent_optimizer"]) == ("adam", "rmsprop")
    found = resolved("copying", "scurnn").training
    assert (found["phases_optimizer"], found["phases_lr"]) == ("adagrad", 1e-4)
    assert resolved("copying", "lstm").training["clip"] == 1.0


def test_negative_ones_of_the_scornn():
    """rho: n/2 for copying and adding up to 200 steps, 7n/10 for longer adding, n/10 for images read in order."""
    assert resolved("copying", "scornn").layer["negative_ones"] == 95
    assert resolved("adding", "scornn", length=200).layer["negative_ones"] == 85
    assert resolved("adding", "scornn", length=750).layer["negative_ones"] == 119
    assert resolved("digits", "scornn").layer["negative_ones"] == 17
    assert resolved("copying", "scornn", hidden=20).layer["negative_ones"] == 10


@pytest.mark.parametrize("task", tasks.names())
@pytest.mark.parametrize("model", models.names())
def test_config_reads_back(tmp_path, task, model):
    """For every pair of the registries."""
    before = resolved(task, model, seed=7)
    path = tmp_path / "config.toml"
    path.write_text(before.as_toml())
    assert settings.resolve(argparse.Namespace(assignments=[]), settings.read(path)) == before


def test_toml_scalars():
    table = {"a": 1, "b": 1e-5, "c": 1e300, "d": True, "e": 'q"\\\n\té', "f": 3.0, "g": math.inf, "t": {"x": -0.5}}
    assert toml.loads(toml.dumps(table)) == table
    with pytest.raises(TypeError):
        toml.dumps({"a": [1]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3),
        ("1e-3", 1e-3),
        ("true", True),
        ("tanh", "tanh"),
        ('"3"', "3"),
        ("1\nb = 2", "1\nb = 2"),
        ("[1]", "[1]"),
    ],
)
def test_values_of_set(text, expected):
    found = toml.value(text)
    assert found == expected and type(found) is type(expected)


def test_registries_have_no_name_twice():
    assert len(set(models.names())) == len(models.MODELS) and len(set(tasks.names())) == len(tasks.TASKS)
    keywords = [set(tasks.find(t).keywords()) for t in tasks.names()]
    for task, own in zip(tasks.names(), keywords, strict=True):
        for model in models.MODELS:
            layer = set(model.keywords(models.Setting(task, 10, 8)))
            assert not layer & own and not layer & set(settings.TRAINING), "--set finds a keyword by its name alone"
