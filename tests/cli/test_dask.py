"""`isometry compare --dask`: its runs are those on this machine, whichever workers there are and whatever ends them."""

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cli_runs import TINY, metrics, tensors
from subprocesses import parent

#: A limit for what hangs: beside other programs each process needs a minute for its imports.
SECONDS = 600
SWEEP = ("compare", "copying", "--models", "scornn,lstm,rnn", "--seeds", "2", "--hidden", "6", "--length", "40")
SWEEP = (*SWEEP, "--batch", "3", "--set", "scornn.negative_ones=2", "--log-every", "7")


def started(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "isometry", *map(str, arguments)],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def until(condition, what):
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


@contextmanager
def cluster(folder, workers):
    """A scheduler and workers with one thread each: the scheduler's file, and the processes of all."""
    folder.mkdir()
    file, processes = folder / "scheduler.json", []

    def start(program, *options):
        words = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--scheduler-file", file, *options]
        with open(folder / f"{program}-{len(processes)}.txt", "w") as log:
            processes.append(subprocess.Popen([*map(str, words)], cwd=folder, stdout=log, stderr=log))
        return processes[-1]

    try:
        scheduler = start("scheduler", "--port", 0, "--no-dashboard", "--host", "127.0.0.1")
        until(file.exists, "the scheduler did not start")
        yield (
            file,
            scheduler,
            [start("worker", "--nthreads", 1, "--no-dashboard", "--no-nanny") for _ in range(workers)],
        )
    finally:
        alone = processes[0].poll() is not None  # workers would look for the scheduler before they end
        for process in reversed(processes):
            process.kill() if alone else process.terminate()
            process.wait(SECONDS)


def begun(folder):
    """A run that has rows and has not ended, and the process that trains it; None if there is none."""
    for path in folder.glob("*/metrics.csv"):
        if len(metrics(path.parent)) > 2 and not (path.parent / "scores.toml").exists():
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if (process / "cmdline").read_bytes().endswith(f"compare.attended\0{path.parent.name}\0".encode()):
                        return path.parent, int(process.name)
    return None


def stopped(folder):
    """`begun`, of a run whose process is stopped before it has ended."""
    found = begun(folder)
    if found is None:
        return None
    os.kill(found[1], signal.SIGSTOP)
    if not (found[0] / "scores.toml").exists():
        return found
    os.kill(found[1], signal.SIGCONT)
    return None


@pytest.mark.extra
@pytest.mark.timeout(4 * SECONDS)
def test_a_sweep_after_a_worker_was_killed_is_that_of_this_machine(isometry, tmp_path):
    """Four runs on two workers, one of which is killed in the middle of a run: the run continues on the other one,
    and rows, scores and checkpoints are the same to the last bit."""
    names = {f"{model}-{seed}" for model in ("scornn", "lstm") for seed in range(2)}
    command = (*SWEEP, "--models", "scornn,lstm", "--iterations", 350, "--threads", 1, "--out")
    with cluster(tmp_path / "cluster", 2) as (file, _, workers):
        sweep = started(tmp_path, *command, "away", "--dask", file)
        folder, process = until(lambda: stopped(tmp_path / "away"), "no run has begun")
        (worker,) = (worker for worker in workers if worker.pid == parent(process))
        worker.kill()
        os.kill(process, signal.SIGCONT)
        until(lambda: not Path(f"/proc/{process}").exists(), "the run did not end with its worker")
        assert 3 <= len(metrics(folder)) < 51
        out, err = sweep.communicate(timeout=2 * SECONDS)
    assert sweep.returncode == 0, err
    assert "4 of 4 runs to do, 4 at once, threads in each: 1" in err
    assert err.count(" parameters\n") == 5 and err.count("  1/350  ") == 4, "one began twice, and went on"

    for line in isometry(*command, "here", "--commands")[1].splitlines():
        assert isometry(*shlex.split(line)[1:])[0] == 0
    status, table, err = isometry(*command, "here")
    assert status == 0 and "0 of 4 runs to do" in err[0]
    untimed = lambda text: [
        [*row.split("|")[:-3], row.split("|")[-2]] for row in text.splitlines() if row.startswith("|")
    ]
    assert untimed(out) == untimed(table) and len(untimed(out)) == 4
    assert {path.name for path in (tmp_path / "away").iterdir()} == {*names, "table.md", "curves.png"}
    for name in names:
        away, here = tmp_path / "away" / name, tmp_path / "here" / name
        assert metrics(away) == metrics(here) and len(metrics(here)) == 51, name
        assert (away / "scores.toml").read_text() == (here / "scores.toml").read_text()
        found, expected = tensors(away), tensors(here)
        assert found.keys() == expected.keys() and all(found[key].equal(expected[key]) for key in found), name


@pytest.mark.extra
@pytest.mark.parametrize("place", ["workers", "local"])
def test_ctrl_c_ends_the_runs_of_a_cluster(isometry, tmp_path, place):
    """Exit status 130 and a checkpoint of what has begun; the rest has not begun, and the same command goes on."""
    command = (*SWEEP, "--log-every", 1, "--threads", 1, "--out", "away", "--dask")
    with cluster(tmp_path / "cluster", int(place == "workers")) as (file, *_):
        command = (*command, file if place == "workers" else "local", "--jobs", 3 if place == "workers" else 1)
        sweep = started(tmp_path, *command, "--iterations", 1_000_000)
        folder, process = until(lambda: begun(tmp_path / "away"), "no run has begun")
        sweep.send_signal(signal.SIGINT)
        out, err = sweep.communicate(timeout=SECONDS)
        assert sweep.returncode == 130 and err.splitlines()[-1] == "interrupted; the same command goes on", err
        assert not Path(f"/proc/{process}").exists() and "| 1 " in out
        before = metrics(folder)
        assert (folder / "checkpoint.safetensors").is_file() and len(list((tmp_path / "away").iterdir())) == 3
        done = int(before[-1]["iteration"])
        more = ("--iterations", done + 5, "--models", folder.name[:-2], "--seeds", f"{folder.name[-1]},")
        status, _, err = isometry(*command, *more)
        assert status == 0 and "1 of 1 runs to do" in err[0], err
    after = metrics(folder)
    assert after[: len(before)] == before and after[-1]["iteration"] == str(done + 5)


@pytest.mark.extra
def test_a_run_that_fails_on_a_worker(isometry):
    options = ("--set", "rnn.lr=1e30", "--set", "rnn.clip=0", "--set", "rnn.optimizer=sgd", "--seeds", 1, "--jobs", 1)
    status, out, err = isometry("compare", "adding", *TINY[:-2], "--models", "rnn,lstm", *options, "--iterations", 30,
                                "--dask", "local")  # fmt: skip
    assert status == 1 and "1 of 2 runs failed; rnn-0: the loss is" in err[-1] and "| lstm " in out


@pytest.mark.extra
def test_a_scheduler_that_is_lost(tmp_path):
    with cluster(tmp_path / "cluster", 1) as (file, scheduler, _):
        sweep = started(tmp_path, *SWEEP, "--iterations", 1_000_000, "--seeds", "0,", "--out", "away", "--dask", file)
        until(lambda: begun(tmp_path / "away"), "no run has begun")
        scheduler.kill()
        _, err = sweep.communicate(timeout=SECONDS)
    assert sweep.returncode == 1 and "3 of 3 runs failed; scornn-0: scornn-0 cancelled" in err.splitlines()[-1], err


@pytest.mark.extra
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere.json", "what://"])
def test_no_scheduler(refused, monkeypatch, address):
    monkeypatch.setattr("isometry.cli.compare.dask_pool.CONNECT_SECONDS", 0.5)
    assert refused(*SWEEP, "--dask", address).startswith(f"isometry: --dask {address}: ")


def test_a_missing_package_says_what_to_install(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    line = refused(*SWEEP, "--dask", "local", status=1)
    assert "needs distributed, which is not installed: pip install distributed" in line


def test_either_commands_or_a_cluster(refused):
    assert "--commands and --dask: give one of the two" in refused(*SWEEP, "--dask", "local", "--commands")
