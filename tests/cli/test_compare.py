"""`isometry compare`: its runs are those of `isometry train`, go on where they ended, and share one table."""

import os
import shlex
import shutil
import signal
import subprocess
import threading
import time

import pytest

from cli_runs import FILES, TINY, metrics
from isometry.cli.compare import process
from isometry.cli.compare.plan import plan
from isometry.cli.compare.pool import share

pytestmark = pytest.mark.slow
COPYING = ("compare", "copying", "--length", 5, "--hidden", 6, "--batch", 3)


def table(text):
    """The rows of the first table: model -> the other cells."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines[2:]}


@pytest.mark.usefixtures("here")
def test_runs_of_two_models_go_on(refused, isometry, tmp_path):
    """One folder for each run, equal to that of `train`; the same command again runs nothing; more of it runs more."""
    command = (*COPYING, "--models", "scornn,lstm", "--set", "scornn.negative_ones=2", "--seeds", "1,", "--threads", 1)
    status, out, _ = isometry(*command, "--iterations", 4)
    assert status == 0
    folder = tmp_path / "runs/compare-copying"
    assert {p.name for p in folder.iterdir()} == {"scornn-1", "lstm-1", "table.md", "curves.png"}
    assert {p.name for p in (folder / "scornn-1").iterdir()} >= FILES
    assert out.strip() in (folder / "table.md").read_text() and "![" in (folder / "table.md").read_text()
    rows = table(out)
    assert list(rows) == ["scornn", "lstm"]
    assert rows["scornn"][:3] == ["6", "144", "1"] and rows["lstm"][-1] == "–"  # LSTMs have no W

    options = (*TINY, "--set", "negative_ones=2", "--seed", 1, "--iterations", 4, "--out", "alone")
    isometry("train", "copying", "--model", "scornn", *options)
    assert metrics(tmp_path / "alone") == metrics(folder / "scornn-1")

    status, again, err = isometry(*command, "--iterations", 4)
    assert (status, again) == (0, out) and "0 of 2 runs to do" in err[0]
    status, out, err = isometry(*command, "--iterations", 6, "--seeds", "1,2", "--models", "scornn")
    assert status == 0 and "2 of 2 runs to do" in err[0]
    assert [metrics(folder / f"scornn-{k}")[-1]["iteration"] for k in (1, 2)] == ["6", "6"]
    assert table(out)["scornn"][2] == "2"

    for name in ("scornn-1", "scornn-2"):  # where a run was made does not bind it
        config = folder / name / "config.toml"
        config.write_text(config.read_text().replace('backend = "cpu"', 'backend = "gpu"'))
    assert isometry(*command, "--iterations", 7, "--models", "scornn")[0] == 0
    assert metrics(folder / "scornn-1")[-1]["iteration"] == "7"

    line = refused(*command, "--lr", 0.5)
    assert "lr is 0.001 there, 0.5 here" in line and "--out" in line


def test_runs_that_exist(isometry, tmp_path):
    """Grouped by task, and by what is not the same; a folder of runs counts as its runs."""
    for model, extra in (("scornn", ()), ("scornn", ("--seed", 1)), ("scornn", ("--lr", 0.1)), ("lstm", ())):
        isometry("train", "copying", "--model", model, *TINY, *extra, "--iterations", 3)
    isometry("train", "adding", "--model", "lstm", *TINY, "--iterations", 3)
    (tmp_path / "runs/note.txt").write_text("not a run")
    status, out, err = isometry("compare", *sorted((tmp_path / "runs").iterdir()))
    assert (status, err) == (0, [])
    assert out.count("## ") == 2 and "## Adding, length 5" in out
    first = out[out.index("## Copying") :]
    assert {name: cells[2] for name, cells in table(first).items()} == {
        "lstm": "1",
        "scornn, lr 0.001": "2",
        "scornn, lr 0.1": "1",
    }
    again = isometry("compare", "runs", tmp_path / "runs/copying-lstm-0")[1]
    assert again == out, "one folder, named twice"
    isometry("train", "copying", "--model", "lstm", *TINY, "--iterations", 3)
    again = isometry("compare", "runs")[1]
    assert table(again[again.index("## Copying") :])["lstm"][2] == "1" and "copying-lstm-0-2 is of seed 0" in again
    shutil.rmtree(tmp_path / "runs/copying-lstm-0-2")
    assert {p.name for p in tmp_path.iterdir()} == {"runs"}
    assert isometry("compare", "runs", "--out", "picture") == (0, out, [])
    assert {p.name for p in (tmp_path / "picture").iterdir()} == {"table.md", "curves.png", "curves-2.png"}


def test_commands_of_the_missing_runs(isometry, tmp_path):
    """One a line, each of which `train` takes, here in another order; nothing is written until then."""
    command = (*COPYING, "--models", "scornn,rnn", "--seeds", "2", "--iterations", 4, "--set", "scornn.negative_ones=2")
    command = (*command, "--out", "all of them")
    status, out, err = isometry(*command, "--commands")
    assert (status, err, len(out.splitlines())) == (0, [], 4) and list(tmp_path.iterdir()) == []
    assert "--threads" not in out and "--threads 1" in isometry(*command, "--commands", "--threads", "1")[1]
    for line in reversed(out.splitlines()[1:]):
        program, *words = shlex.split(line)
        assert program == "isometry" and isometry(*words)[0] == 0
    assert isometry(*command, "--commands")[1].splitlines() == out.splitlines()[:1]
    assert isometry(*shlex.split(out.splitlines()[0])[1:])[0] == 0
    assert isometry(*command, "--commands") == (0, "", [])
    more = isometry(*command, "--seeds", 1, "--iterations", 5, "--commands")[1].splitlines()
    assert more[0].startswith("isometry train --resume 'all of them/scornn-0' --iterations 5") and len(more) == 2
    status, out, err = isometry(*command)
    assert status == 0 and "0 of 4 runs to do" in err[0] and table(out)["scornn"][2] == "2"
    assert (tmp_path / "all of them/table.md").is_file()
    assert "--commands means nothing" in isometry("compare", "all of them", "--commands")[2][0]


def test_a_run_that_fails_leaves_the_others(isometry):
    options = ("--set", "rnn.lr=1e30", "--set", "rnn.clip=0", "--set", "rnn.optimizer=sgd", "--seeds", 1)
    command = ("compare", "adding", *TINY[:-2], "--models", "rnn,lstm", *options, "--iterations", 30)
    status, out, err = isometry(*command)
    assert status == 1 and "1 of 2 runs failed; rnn-0: the loss is" in err[-1]
    assert table(out)["lstm"][2] == "1"


def test_ctrl_c_ends_all_runs(isometry, tmp_path, monkeypatch):
    """Exit status 130, no process left, a checkpoint in each folder from which the same command goes on."""
    command = [*map(str, COPYING), "--models", "rnn,lstm", "--seeds", "2", "--jobs", "2", "--log-every", "1"]
    folders = [tmp_path / "runs" / name for name in ("rnn-0", "rnn-1")]
    popen, children = subprocess.Popen, []

    def started(words, **given):
        children.append(popen(words, **given))
        return children[-1]

    def interrupt():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if all((f / "metrics.csv").exists() and len(metrics(f)) > 2 for f in folders):
                break
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(process.subprocess, "Popen", started)
    threading.Thread(target=interrupt).start()
    status, out, err = isometry(*command, "--iterations", "1000000", "--out", "runs")
    assert status == 130 and err[-1] == "interrupted; the same command goes on"
    assert len(children) == 2 and not any(os.path.exists(f"/proc/{child.pid}") for child in children)
    assert "seed 1" in out and table(out)["rnn"][2] == "2"
    assert not (tmp_path / "runs/lstm-0").exists()
    before = metrics(folders[0])
    total = 3 + max(int(metrics(f)[-1]["iteration"]) for f in folders)
    status, _, _ = isometry(*command, "--iterations", total, "--models", "rnn", "--out", "runs")
    after = metrics(folders[0])
    assert status == 0 and after[: len(before)] == before and after[-1]["iteration"] == str(total)


@pytest.mark.parametrize("gone", [False, True])
def test_a_run_that_is_ended_before_it_begins(tmp_path, monkeypatch, gone):
    """Told so before the process has read anything, with signals ignored as by a shell's background process; or the
    process that started it is gone."""
    monkeypatch.chdir(tmp_path)
    (run,) = plan({"task": "adding", "iterations": "1000000"}, ["rnn"], [0], None, tmp_path)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        started = process.start(run, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    if gone:
        started.stdin.close(), started.stdout.close()
        started.wait(100)
    else:
        process.end(started)
        shown = []
        assert process.follow("rnn-0", started, shown.append) == "interrupted" and "rnn-0: interrupted" in shown
    assert started.returncode == 130 and list(tmp_path.iterdir()) == []


def test_options_for_folders(refused, tmp_path):
    """What decides a training means nothing to runs that exist; a folder without runs is said."""
    (tmp_path / "empty").mkdir()
    assert "holds no run" in refused("compare", "empty")
    assert "--lr means nothing" in refused("compare", "empty", "--lr", 1)


def test_shares_of_the_cores(monkeypatch):
    """(processes, threads of each) for runs, --jobs and --threads on four cores."""
    monkeypatch.setattr("isometry.get_num_threads", lambda: 4)
    assert [share(runs, None, None) for runs in (1, 2, 3, 9)] == [(1, 4), (2, 2), (3, 1), (4, 1)]
    assert share(9, "2", None) == (2, 2) and share(9, None, "2") == (2, 2) and share(9, "8", None) == (8, 1)
    assert share(9, None, "16") == (1, 16)
