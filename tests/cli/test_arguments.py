"""Invalid arguments: exit status 2 and one line that names the argument, before anything is computed or written."""

import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli_runs import TINY
from isometry.cli.errors import PACKAGES
from subprocesses import run

RNN = ("compare", "copying", "--models", "rnn")
TRAIN = ("train", "copying", "--model", "scornn")
COMPARE = ("compare", "copying", "--length", 5, "--hidden", 6, "--batch", 3)
WRONG = {
    "no command": ((), "COMMAND"),
    "unknown command": (("fly",), "fly"),
    "no task": (("train", "--model", "scornn"), "TASK"),
    "unknown task": (("train", "Copyin", "--model", "scornn"), "not 'Copyin'. Did you mean 'copying'?"),
    "no model": (("train", "copying"), "--model"),
    "unknown model": (("train", "copying", "--model", "gpt"), "gpt"),
    "negative rate": ((*TRAIN, "--lr", "-1"), "--lr"),
    "negative seed": ((*TRAIN, "--seed", "-1"), "--seed"),
    "seed of more than 64 bits": ((*TRAIN, "--seed", str(2**64)), "--seed must"),
    "seeds of more than 64 bits": ((*RNN, "--seeds", f"{2**64},"), "--seed must"),
    "a seed of a comparison": ((*RNN, "--set", "seed=5"), "--set seed: --seeds"),
    "a seed of one model": ((*RNN, "--set", "rnn.seed=5"), "--set seed: --seeds"),
    "a size beside parameters": ((*RNN, "--parameters", "2000", "--set", "hidden=8"), "--set hidden: --parameters"),
    "unknown option": ((*TRAIN, "--speed", "9"), "--speed"),
    "an option cut short": (("compare", "copying", "--models", "scornn", "--seed", "5"), "--seed"),
    "length of digits": (("train", "digits", "--model", "rnn", "--length", "5"), "--length"),
    "too short": (("train", "adding", "--model", "scornn", "--length", "1"), "--length must be at least 2, not 1"),
    "size that the activation refuses": (
        ("train", "adding", "--model", "ornn", "--hidden", "7", "--set", "nonlinearity=oplu"),
        "--hidden must have an even number",
    ),
    "task twice": ((*TRAIN, "--task", "adding"), "--task"),
    "no such data": (("train", "--task", "own:Reader", "--model", "rnn", "--data", "x.csv"), "--data x.csv"),
    "data of copying": ((*TRAIN, "--data", "x.csv"), "--data"),
    "set without value": ((*TRAIN, "--set", "negative_ones"), "negative_ones"),
    "unknown keyword": ((*TRAIN, "--set", "reflections=3"), "reflections"),
    "unknown optimiser": ((*TRAIN, "--set", "optimizer=magic"), "optimizer"),
    "zero logging": ((*TRAIN, "--set", "log_every=0"), "--set log_every must"),
    "batch above the data": (("train", "digits", "--model", "rnn", "--batch", "5000"), "--batch must"),
    "no such config": (("train", "--config", "none.toml"), "none.toml"),
    "too many threads": ((*TRAIN, "--threads", "2000"), "--threads"),
    "an empty folder": ((*TRAIN, "--out", ""), "--out: must name"),
    "empty data": (("train", "characters", "--model", "rnn", "--data", ""), "--data must be"),
    "an empty folder of a comparison": ((*RNN, "--out", ""), "--out: must name"),
    "an empty target": (("compare", ""), "must name"),
    "a config without end": ((*TRAIN, "--config", "/dev/zero"), "/dev/zero is not a regular file"),
    "compare: nothing": (("compare",), "TASK or FOLDER is missing"),
    "compare: no such folder": (("compare", "nowhere"), "nowhere"),
    "compare: no models": (("compare", "copying", "--hidden", "5"), "--models is missing"),
    "compare: two tasks": (("compare", "copying", "adding", "--models", "lstm"), "TASK must be one task"),
    "compare: unknown task": (("compare", "flying", "--models", "lstm"), "flying"),
    "compare: unknown model": ((*COMPARE, "--models", "lstm,gpt"), "gpt"),
    "compare: a model twice": ((*COMPARE, "--models", "lstm,rnn,lstm"), "two of the name lstm"),
    "compare: both sizes": ((*COMPARE, "--models", "lstm", "--parameters", "100"), "give one of the two"),
    "compare: no parameters": (("compare", "copying", "--models", "lstm", "--parameters", "0"), "--parameters must be"),
    "compare: seeds": ((*COMPARE, "--models", "lstm", "--seeds", "0"), "--seeds must be"),
    "compare: a seed": ((*COMPARE, "--models", "lstm", "--seeds", "1,x"), "--seeds must be"),
    "compare: jobs": ((*COMPARE, "--models", "lstm", "--jobs", "0"), "--jobs must be"),
    "compare: threads": ((*COMPARE, "--models", "lstm", "--threads", "x"), "--threads must be"),
    "compare: keyword of none": ((*COMPARE, "--models", "lstm,rnn", "--set", "reflections=3"), "--set reflections"),
    "compare: of another": ((*COMPARE, "--models", "rnn,ornn", "--set", "rnn.reflections=3"), "--set reflections"),
    "compare: a setting": ((*COMPARE, "--models", "lstm", "--lr", "-1"), "--lr must be"),
}


class Reader:
    """A task that reads a file."""

    inputs = outputs = 1

    def __init__(self, *, data):
        self.text = Path(data).read_text()

    def draw(self, rng):
        return rng.random((1, 1, 1)), rng.random((1, 1, 1))

    def loss(self, values, target):
        return (values - target).square().mean()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_argument(refused, monkeypatch, name):
    arguments, named = WRONG[name]
    if "own:Reader" in arguments:
        monkeypatch.setitem(sys.modules, "own", SimpleNamespace(Reader=Reader))
    line = refused(*arguments)
    assert named in line and line.startswith("isometry: ")


@pytest.mark.parametrize(
    ("make", "named"),
    [(os.mkfifo, "is not a regular file"), (os.mkdir, "is not a regular file"),
     (lambda path: path.write_bytes(b"hidden = '\xff'"), "is not text in UTF-8"),
     (lambda path: path.write_text("a = " + "[" * 5000), "is not a TOML file")],
)  # fmt: skip
def test_a_config_that_cannot_be_read(refused, tmp_path, make, named):
    make(tmp_path / "c.toml")
    assert f"isometry: c.toml {named}" in refused("train", "--config", "c.toml")


@pytest.mark.parametrize("command", [TRAIN, ("compare", "copying", "--models", "scornn,lstm")], ids=lambda c: c[0])
@pytest.mark.slow
def test_a_gpu_that_is_not_there(tmp_path, command):
    """In a process that has opened none."""
    words = [sys.executable, "-m", "isometry", *command, "--backend", "gpu"]
    done = run(words, check=False, cwd=tmp_path, ISOMETRY_GPU_ADAPTER="none-such")
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("isometry: --backend gpu: ") and "--backend cpu" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [("hidden = ", "TOML"), ("size = 3", "size"), ("layer = 3", "layer"), ("hidden = true", "c.toml: hidden must"),
     ("threads = 2000", "c.toml: threads must"), ("length = 0", "c.toml: length must"),
     ("[layer]\nnegative_ones = 1000", "c.toml: negative_ones must"),
     ("[layer]\nreflections = 3", "c.toml: reflections is no keyword")],
)  # fmt: skip
def test_wrong_config(refused, tmp_path, text, named):
    (tmp_path / "c.toml").write_text(f'task = "copying"\nmodel = "scornn"\n{text}\n')
    assert named in refused("train", "--config", "c.toml")


def test_help_and_version(isometry):
    for arguments in (("--help",), ("train", "--help"), ("compare", "--help"), ("info", "--help"), ("--version",)):
        status, out, err = isometry(*arguments)
        assert (status, err) == (0, []) and "isometry" in out
        assert ("copying         --length 1000, --batch 20, --iterations 10000" in out) == (arguments[0] == "train")


def test_a_warning_is_one_line(isometry):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        status, _, err = isometry(*TRAIN, *TINY, "--set", "dropout=0.5", "--iterations", "1")
    assert status == 0 and len(err) == 1 and err[0].startswith("isometry: warning: dropout")


@pytest.mark.parametrize("module", PACKAGES)
def test_a_missing_extra_says_what_to_install(refused, monkeypatch, module):
    """One line with the package's name, exit status 1, nothing written."""
    monkeypatch.setitem(sys.modules, module, None)
    line = refused("train", "digits", "--model", "rnn", "--iterations", "1", status=1)
    assert line.endswith(f"pip install {PACKAGES[module]}") and f"needs {PACKAGES[module]}, which" in line
