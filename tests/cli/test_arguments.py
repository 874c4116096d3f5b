"""Invalid arguments: exit status 2 and one line that names the argument, before anything is computed or written."""

import sys

import pytest

from cli_runs import TINY

TRAIN = ("train", "copying", "--model", "scornn")
WRONG = {
    "no command": ((), "COMMAND"),
    "unknown command": (("fly",), "fly"),
    "no task": (("train", "--model", "scornn"), "TASK"),
    "unknown task": (("train", "flying", "--model", "scornn"), "flying"),
    "no model": (("train", "copying"), "--model"),
    "unknown model": (("train", "copying", "--model", "gpt"), "gpt"),
    "zero": ((*TRAIN, "--hidden", "0"), "--hidden"),
    "not an integer": ((*TRAIN, "--batch", "2.5"), "--batch"),
    "negative rate": ((*TRAIN, "--lr", "-1"), "--lr"),
    "not a number": ((*TRAIN, "--recurrent-lr", "nan"), "--recurrent-lr"),
    "negative seed": ((*TRAIN, "--seed", "-1"), "--seed"),
    "unknown option": ((*TRAIN, "--speed", "9"), "--speed"),
    "unknown backend": ((*TRAIN, "--backend", "tpu"), "tpu"),
    "length of digits": (("train", "digits", "--model", "rnn", "--length", "5"), "--length"),
    "data of copying": ((*TRAIN, "--data", "x.csv"), "--data"),
    "set without value": ((*TRAIN, "--set", "negative_ones"), "negative_ones"),
    "unknown keyword": ((*TRAIN, "--set", "reflections=3"), "reflections"),
    "keyword of another type": ((*TRAIN, "--set", "negative_ones=many"), "negative_ones"),
    "keyword out of range": ((*TRAIN, *TINY, "--set", "negative_ones=1000"), "negative_ones"),
    "unknown nonlinearity": ((*TRAIN, *TINY, "--set", "nonlinearity=cubic"), "cubic"),
    "task keyword out of range": ((*TRAIN, *TINY, "--set", "marker_offset=7"), "marker_offset"),
    "unknown optimiser": ((*TRAIN, "--set", "optimizer=magic"), "optimizer"),
    "zero logging": ((*TRAIN, "--set", "log_every=0"), "log_every"),
    "batch above the data": (("train", "digits", "--model", "rnn", "--batch", "5000"), "batch"),
    "no such config": (("train", "--config", "none.toml"), "none.toml"),
    "too many threads": ((*TRAIN, "--threads", "2000"), "--threads"),
    "too many threads of the bench": (("bench", "small", "--threads", "2000"), "--threads"),
    "unknown group": (("bench", "everything"), "everything"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_argument(isometry, tmp_path, name):
    arguments, named = WRONG[name]
    status, out, err = isometry(*arguments)
    assert status == 2 and out == "" and len(err) == 1
    assert named in err[0] and err[0].startswith("isometry: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [("hidden = ", "TOML"), ("size = 3", "size"), ("layer = 3", "layer"), ("hidden = true", "hidden"),
     ("threads = 2000", "threads"),
     ("[layer]\nreflections = 3", "reflections")],
)  # fmt: skip
def test_wrong_config(isometry, tmp_path, text, named):
    (tmp_path / "c.toml").write_text(f'task = "copying"\nmodel = "scornn"\n{text}\n')
    status, _, err = isometry("train", "--config", "c.toml")
    assert status == 2 and len(err) == 1 and named in err[0]


def test_help_and_version(isometry):
    for arguments in (("--help",), ("train", "--help"), ("bench", "--help"), ("info", "--help"), ("--version",)):
        status, out, err = isometry(*arguments)
        assert (status, err) == (0, []) and "isometry" in out


def test_the_gpu_is_a_failure_not_a_wrong_argument(isometry):
    status, _, err = isometry(*TRAIN, "--backend", "gpu")
    assert status == 1 and len(err) == 1 and "backend" in err[0]


@pytest.mark.parametrize("module", ["torch", "tqdm", "matplotlib", "safetensors", "sklearn"])
def test_a_missing_extra_says_what_to_install(isometry, monkeypatch, tmp_path, module):
    """One line with the package's name and the extra, exit status 1, nothing written."""
    monkeypatch.setitem(sys.modules, module, None)
    status, out, err = isometry("train", "digits", "--model", "rnn", "--iterations", "1")
    assert status == 1 and out == "" and len(err) == 1
    assert "pip install isometry[train]" in err[0]
    assert {"sklearn": "scikit-learn"}.get(module, module) in err[0]
    assert list(tmp_path.iterdir()) == []
