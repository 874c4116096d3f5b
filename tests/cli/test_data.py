"""A run and its data: found again from every folder, at another place too, and no others taken for them."""

import os
import shutil
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

import isometry as iso
from cli_runs import TINY
from isometry.cli.data import digest, files
from reader_files import wav
from task_data import images, recordings, text


class Folder:
    """A task of a user that reads whatever lies in a file or folder."""

    inputs = outputs = 1

    def __init__(self, *, data):
        paths = [data] if os.path.isfile(data) else sorted(str(path) for path in Path(data).iterdir() if path.is_file())
        self.sum = sum(sum(Path(path).read_bytes()) for path in paths) % 7

    def draw(self, rng):
        x = rng.random((3, 2, 1)) + self.sum
        return x, x

    def loss(self, values, target):
        return (values - target).square().mean()


def other(path):
    """One byte or sample of the data is another; of a text a letter that it has."""
    file = path if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())[0]
    data = bytearray(file.read_bytes())
    data[-3] = data[-4] if data[-3] != data[-4] else data[-6]
    assert bytes(data) != file.read_bytes()
    file.write_bytes(data)


def kinds(folder):
    """Tasks with data, and their options."""
    (folder / "wav").write_bytes(wav(bytes(range(200))))
    return {
        "characters": (text(folder), TINY),
        "waveform": (folder / "wav", ("--hidden", 6, "--length", 20, "--threads", 1)),
        "pixels": (images(folder / "images"), ("--hidden", 6, "--batch", 3, "--threads", 1)),
        "next-frame": (recordings(folder / "recordings"), TINY),
        "mine:Folder": (text(folder), ("--hidden", 6, "--threads", 1)),
    }


@pytest.mark.parametrize("task", ["characters", "waveform", "pixels", "next-frame", "mine:Folder"])
def test_a_run_knows_its_data(refused, isometry, tmp_path, monkeypatch, task):
    """From a folder with others of that name, moved, copied and linked it goes on; with others it does not begin."""
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Folder=Folder))
    data, options = kinds(tmp_path)[task]
    command = ("train", "--task", task, "--model", "rnn", *options, "--data", data.name)
    assert isometry(*command, "--iterations", 2, "--out", "run")[::2] == (0, [])
    assert iso.load_run("run").settings["data"] == str(data)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (shutil.copytree if data.is_dir() else shutil.copy)(data, elsewhere / data.name)
    other(elsewhere / data.name)
    monkeypatch.chdir(elsewhere)
    run = tmp_path / "run"
    line = refused("train", "--resume", run, "--iterations", 3, "--data", data.name)
    assert f"--data {elsewhere / data.name}: not the data" in line
    assert isometry("train", "--resume", run, "--iterations", 3)[::2] == (0, [])

    moved = tmp_path / "another place"
    data.rename(moved)
    line = refused("train", "--resume", run, "--iterations", 4)
    assert "config.toml: data" in line and "--data PATH" in line
    assert isometry("train", "--resume", run, "--iterations", 4, "--data", moved)[::2] == (0, [])
    if moved.is_dir():
        (moved / "zip.txt").write_text("no data of this task")
    (elsewhere / "link").symlink_to(moved)
    assert isometry("train", "--resume", run, "--iterations", 5, "--set", "data=link")[::2] == (0, [])
    assert iso.load_run(run).settings["data"] == str(elsewhere / "link")
    other(moved)
    assert "not the data" in refused("train", "--resume", run, "--iterations", 6)


def test_runs_of_earlier_versions(isometry, tmp_path):
    """Their config.toml has no digest, and a path as it was typed: they go on with what lies there, which is said."""
    options = ("train", "characters", "--model", "rnn", *TINY, "--data", text(tmp_path).name)
    isometry(*options, "--iterations", 2, "--out", "run")
    config = tmp_path / "run/config.toml"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("data")]
    config.write_text('data = "text.txt"\n' + "\n".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning is a line, whatever the filters are
        status, _, err = isometry("train", "--resume", "run", "--iterations", 3)
    assert status == 0 and len(err) == 1 and err[0].startswith("isometry: warning: ")
    assert str(tmp_path / "text.txt") in err[0] and "no digest" in err[0]
    assert isometry("train", "--resume", "run", "--iterations", 4)[::2] == (0, [])
    other(tmp_path / "text.txt")
    assert isometry("train", "--resume", "run", "--iterations", 5)[0] == 2
    assert iso.load_run("run").metrics["iteration"][-1] == 4


def test_data_for_a_run_without_any(refused, isometry, tmp_path):
    options = ("--model", "rnn", "--hidden", 6, "--length", 5, "--threads", 1)
    isometry("train", "waveform", *options, "--iterations", 1, "--out", "run")
    (tmp_path / "a.wav").write_bytes(wav(bytes(range(200))))
    for word in (("--data", "a.wav"), ("--set", "data=a.wav")):
        assert "--resume goes on with the settings" in refused("train", "--resume", "run", "--iterations", 2, *word)
    assert "data" not in (tmp_path / "run/config.toml").read_text()


def test_a_run_within_its_data(isometry, tmp_path, monkeypatch):
    """What training writes, and files that are no data, do not make the folder another one."""
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Folder=Folder))
    (tmp_path / "a").write_text("data")
    options = ("--task", "mine:Folder", "--model", "rnn", "--hidden", 6, "--threads", 1, "--data", ".")
    assert isometry("train", *options, "--iterations", 1)[::2] == (0, [])
    (tmp_path / ".DS_Store").write_text("x")
    assert isometry("train", "--resume", "runs/folder-rnn-0", "--iterations", 2)[::2] == (0, [])
    (tmp_path / "b").write_text("more data")
    assert isometry("train", "--resume", "runs/folder-rnn-0", "--iterations", 3)[0] == 2


@pytest.mark.usefixtures("here")
def test_a_comparison_knows_its_data(refused, isometry, tmp_path, monkeypatch):
    """Given again with another place of its data it goes on; runs of the same data share a table."""
    text(tmp_path)
    command = ("compare", "characters", "--models", "rnn", "--seeds", 1, *TINY, "--out", tmp_path / "all")
    assert isometry(*command, "--data", "text.txt", "--iterations", 2)[0] == 0
    (tmp_path / "text.txt").rename(tmp_path / "moved.txt")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    status, out, err = isometry(*command, "--data", "../moved.txt", "--iterations", 3, "--seeds", 2)
    assert status == 0 and "2 of 2 runs to do" in err[0] and out.count("## ") == 1 and "| rnn | 6 | 412 | 2 |" in out
    shutil.copy(tmp_path / "moved.txt", tmp_path / "sub/copy.txt")
    isometry("train", "characters", "--model", "rnn", *TINY, "--data", "copy.txt", "--seed", 5, "--iterations", 3,
             "--out", tmp_path / "all/five")  # fmt: skip
    out = isometry("compare", tmp_path / "all")[1]
    assert out.count("## ") == 1 and "| rnn | 6 | 412 | 3 |" in out
    other(tmp_path / "sub/copy.txt")
    line = refused(*command, "--data", "copy.txt", "--iterations", 3)
    assert "data is" in line and "--out" in line
    isometry("train", "characters", "--model", "rnn", *TINY, "--data", "copy.txt", "--seed", 6, "--iterations", 3,
             "--out", tmp_path / "all/six")  # fmt: skip
    assert isometry("compare", tmp_path / "all")[1].count("## ") == 2


def test_a_digest_is_of_names_and_contents(tmp_path):
    """Not of the place, the order, the times, hidden files, runs; pipes, devices and loops do not hold it up."""
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        (folder / "sub").mkdir(parents=True)
        names = ["x", "sub/y", os.fsdecode(b"caf\xe9"), " \n"]
        for name in names if folder == a else names[::-1]:
            (folder / name).write_text(name.encode("utf-8", "replace").decode())
    assert digest(str(a)) == digest(str(b)) != None  # noqa: E711
    (a / ".hidden").write_text("x")
    (a / "loop").symlink_to(a)
    (a / "nothing").symlink_to("nowhere")
    os.mkfifo(a / "pipe")
    os.utime(a / "x", (1, 1))
    assert digest(str(a)) == digest(str(b)) and len(files(a)) == 4
    (a / "x").write_text("z")
    assert digest(str(a)) != digest(str(b))
    (a / "x").rename(b / "z")
    (b / "x").unlink()
    (b / "z").write_text("x")
    assert digest(str(a)) != digest(str(b))
    assert digest(None) is digest(str(a / "pipe")) is digest("/dev/null") is None
    assert digest(str(b / "z")) == digest(str(b / "z")) != digest(str(b / "sub/y"))
