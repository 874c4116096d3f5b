"""`torchrun -m isometry train`: several processes make the updates of one, and end together."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import distributed_runs
from cli_runs import FILES, TINY, metrics, wait
from isometry.cli import registry
from isometry.cli.distributed import Group
from isometry.cli.errors import UsageError
from subprocesses import environment

pytestmark = pytest.mark.slow

BATCH = ("--batch", 4, "--log-every", 1)
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "isometry")


def close(found, expected):
    """Rows of metrics.csv, equal but for rounding."""
    assert [row["iteration"] for row in found] == [row["iteration"] for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert row.keys() == other.keys()
        for name in row.keys() - {"orthogonality_error"}:
            assert float(row[name]) == pytest.approx(float(other[name]), rel=1e-3, abs=1e-5), (row, name)


@contextlib.contextmanager
def in_two(folder, commands):
    """Two processes run the commands together, while the block runs."""
    script = [sys.executable, distributed_runs.__file__, str(folder / "store")]
    words = [[*script, str(rank), json.dumps(commands)] for rank in range(2)]
    runs = [subprocess.Popen(each, cwd=folder, env=environment()) for each in words]
    try:
        yield
        assert [run.wait(timeout=240) for run in runs] == [0, 0]
    finally:
        for run in runs:
            run.kill()


def test_every_model_in_two_processes(isometry, tmp_path):
    """Losses and scores are those of one process with the whole batch; the first process alone writes."""
    models = registry.names("model")
    tasks = ["adding" if k % 2 else "copying" for k in range(len(models))]
    commands = [
        ["train", task, "--model", model, *map(str, (*TINY, *BATCH)), "--hidden", "8", "--iterations", "6"]
        for task, model in zip(tasks, models, strict=True)
    ]
    both = [[*words, "--out", f"two/{model}"] for words, model in zip(commands, models, strict=True)]
    with in_two(tmp_path, both):
        for words, model in zip(commands, models, strict=True):
            assert isometry(*words, "--out", f"one/{model}")[0] == 0
    for model in models:
        assert {p.name for p in (tmp_path / "two" / model).iterdir()} >= FILES, model
        close(metrics(tmp_path / "two" / model), metrics(tmp_path / "one" / model))
    assert {p.name for p in (tmp_path / "two").iterdir()} == set(models)


@pytest.mark.parametrize("receiver", ["second process", pytest.param("torchrun", marks=pytest.mark.long)])
def test_ctrl_c_under_torchrun(isometry, tmp_path, receiver):
    """One folder with a checkpoint after the same update everywhere; resumed by two processes it equals
    one."""
    options = [str(o) for o in ("train", "copying", "--model", "scornn", *TINY, *BATCH)]
    command = [*TORCHRUN, *options, "--iterations", "1000000", "--out", "run"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    )
    folder, workers = tmp_path / "run", []
    try:
        wait(process, folder, 3)
        workers = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if rank(pid, tmp_path)]
        second = next(pid for pid in workers if rank(pid, tmp_path) == "1")
        os.kill(second if receiver == "second process" else process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert len(workers) == 2 and not any(os.path.exists(f"/proc/{pid}") for pid in workers), out
    assert "this goes on: isometry train --resume run" in out and out.count("interrupted;") == 1, out
    assert {p.name for p in folder.iterdir()} >= FILES - {"scores.toml"} and {p.name for p in tmp_path.iterdir()} == {
        "run"
    }
    total = int(metrics(folder)[-1]["iteration"]) + 3
    with in_two(tmp_path, [["train", "--resume", "run", "--iterations", str(total)]]):
        pass
    assert isometry(*options, "--iterations", total, "--out", "whole")[0] == 0
    first = slice(20)  # later ones differ by what rounding has grown to
    close(metrics(folder)[first], metrics(tmp_path / "whole")[first])
    assert metrics(folder)[-1]["iteration"] == str(total)


def rank(pid, folder):
    """The rank of a process that torchrun started in the folder; None of any other."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            known = dict(pair.partition(b"=")[::2] for pair in file.read().split(b"\0"))
        return known[b"RANK"].decode() if os.readlink(f"/proc/{pid}/cwd") == str(folder) and b"RANK" in known else None
    except OSError:
        return None


@pytest.mark.parametrize(("last_only", "shape"), [(True, (6,)), (True, (6, 1)), (False, (5, 6)), (False, (5, 6, 2))])
def test_shares_make_up_the_batch(last_only, shape):
    x, target = torch.randn(5, 6, 2), torch.randn(shape)
    parts = [Group(rank, 3).share(x, target, last_only=last_only) for rank in range(3)]
    assert torch.equal(torch.cat([part for part, _ in parts], 1), x)
    assert torch.equal(torch.cat([part for _, part in parts], 0 if last_only else 1), target)
    whole = Group().share(x, target, last_only=last_only)
    assert whole[0] is x and whole[1] is target


@pytest.mark.parametrize("last_only", [True, False])
def test_shares_of_sequences_of_several_lengths(last_only):
    lengths = torch.tensor([2, 5, 3, 4])
    steps = torch.arange(5)[:, None] + 10 * torch.arange(4)  # (T, B): which step of which sequence
    x = pack_padded_sequence(steps[..., None].float(), lengths, enforce_sorted=False)
    target = torch.arange(4) if last_only else x.data[:, 0].clone()
    for rank in range(2):
        part, own = Group(rank, 2).share(x, target, last_only=last_only)
        padded, found = pad_packed_sequence(part)
        assert found.tolist() == lengths[2 * rank : 2 * rank + 2].tolist()
        for k in range(2):
            assert torch.equal(padded[: found[k], k, 0], steps[: found[k], 2 * rank + k].float())
        assert torch.equal(own, target[2 * rank : 2 * rank + 2] if last_only else part.data[:, 0])


def test_batches_that_cannot_be_shared():
    with pytest.raises(UsageError, match="--batch: 2 processes cannot share 5 sequences"):
        Group(0, 2).share(torch.zeros(3, 5, 1), torch.zeros(5, 1), last_only=True)
    with pytest.raises(UsageError, match="TASK: .*the 4 sequences along axis 1, not be of shape"):
        Group(0, 2).share(torch.zeros(3, 4, 1), torch.zeros(4, 1), last_only=False)


def test_processes_of_one_machine_share_its_cores(monkeypatch):
    from isometry.cli.settings import SETTINGS

    monkeypatch.setattr("isometry.cli.settings.get_num_threads", lambda: 4)
    assert SETTINGS["threads"].value == 4
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    for processes, threads in (("1", 4), ("2", 2), ("3", 1), ("9", 1)):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", processes)
        assert SETTINGS["threads"].value == threads
