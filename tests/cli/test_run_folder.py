"""The folder of a run: one process at a time, going on from its checkpoint, progress, a disk without room."""

import errno
import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios

import pytest
from tqdm import tqdm

from cli_runs import FILES, TINY, metrics, same_run, wait
from isometry.cli import checkpoint, plots
from isometry.cli.errors import Failure, UsageError
from isometry.cli.files import write_text
from isometry.cli.progress import BAR, figures, scores_first
from isometry.cli.run_folder import RunFolder
from subprocesses import run, script

pytestmark = pytest.mark.slow
OPTIONS = [str(o) for o in ("train", "copying", "--model", "scornn", *TINY, "--log-every", 1)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_one_process_trains_a_run(isometry, tmp_path, number):
    """A second one is refused, also by `compare`, until the first has ended or died."""
    folder, more = tmp_path / "all/scornn-0", "1000000"
    isometry(*OPTIONS, "--iterations", 2, "--out", folder)
    resume = ("train", "--resume", str(folder), "--iterations")
    first = subprocess.Popen([sys.executable, "-m", "isometry", *resume, more], stdout=subprocess.DEVNULL)
    try:
        wait(first, folder, 5)
        status, out, err = isometry(*resume, "3")
        assert (status, out) == (1, "") and err == [f"isometry: {folder}: another process trains this run"]
        status, _, err = isometry(*OPTIONS, "--iterations", 2, "--out", folder)
        assert status == 2 and "holds a run already" in err[0]
        wait(first, folder, len(metrics(folder)) + 3)
        first.send_signal(number)
        first.wait(timeout=30)
    finally:
        first.kill()
    total = int(metrics(folder)[-1]["iteration"]) + 3
    assert isometry(*resume, total)[::2] == (0, [])
    rows = [int(row["iteration"]) for row in metrics(folder)]
    assert rows == list(range(1, total + 1))
    assert not (folder / ".lock").exists()


def test_new_folders_of_processes_that_start_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RunFolder.create("a", None) as first, RunFolder.create("a", None) as second:
        assert [str(first.path), str(second.path)] == ["runs/a", "runs/a-2"]
        with pytest.raises(Failure, match="runs/a: another process"), RunFolder.create("", "runs/a"):
            pass
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--out file is not a folder"), RunFolder.create("", "file"):
        pass


def test_a_lock_left_behind_binds_nobody(isometry, tmp_path):
    """That of a process that was killed."""
    isometry(*OPTIONS, "--iterations", 2, "--out", "run")
    (tmp_path / "run/.lock").touch()
    assert isometry("train", "--resume", "run", "--iterations", 3)[0] == 0


SOFT = """
    import sys, warnings
    sys.modules["fcntl"] = None
    warnings.simplefilter("ignore")
    from pathlib import Path
    from isometry.cli.errors import Failure
    from isometry.cli.run_folder import RunFolder

    folder = RunFolder(Path(sys.argv[1]))
    with folder.locked():
        try:
            with folder.locked():
                raise AssertionError("twice")
        except Failure as error:
            print(error)
    print(list(folder.path.iterdir()))
"""


def test_a_lock_without_fcntl(tmp_path):
    """As on Windows: nothing imports it, and a lock that is a file excludes others and goes."""
    out = script(SOFT, tmp_path).splitlines()
    assert out == [f"{tmp_path}: another process trains this run", "[]"]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.EIO, errno.ENOSYS])
def test_a_file_system_without_locks(isometry, monkeypatch, tmp_path, code):
    """It is said once, and the run goes on; where a lock of another kind protects it nothing is said."""

    def fails(_, operation):
        if operation != fcntl.LOCK_UN:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", fails)
    for words in ((*OPTIONS, "--out", "run"), ("train", "--resume", "run", "--threads", 1)):
        status, _, err = isometry(*words, "--iterations", 2 + words.count("--resume"))
        assert status == 0 and len(err) == (code != errno.ENOSYS), err
        assert all(line.startswith("isometry: warning: run cannot be locked (") for line in err)
        assert not (tmp_path / "run/.lock").exists()


def test_a_lock_where_nothing_can_be_written(isometry, monkeypatch, tmp_path):
    """Not two lines about it."""
    for code in (errno.EACCES, errno.EROFS, errno.ENOSPC):

        def fails(*_, code=code, **__):
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr("filelock.FileLock.acquire", fails)
            patch.setattr("pathlib.Path.write_text", fails)
            status, _, err = isometry(*OPTIONS, "--iterations", 2, "--out", "run")
        assert status == 1 and len(err) == 1 and f"config.toml: {os.strerror(code)}" in err[0]
        assert not list(tmp_path.iterdir())


LIMITED = """
    import resource, sys
    from isometry.cli import main

    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
    sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(("limit", "name"), [(2000, "checkpoint.safetensors"), (20_000, "curves.png")])
def test_files_that_cannot_be_written(tmp_path, limit, name):
    """A limit on the size of files stands for a full disk."""
    done = script(LIMITED, limit, *OPTIONS, "--iterations", 3, "--out", tmp_path / "run", check=False)
    assert done.returncode == 1 and done.stderr.startswith(f"isometry: {tmp_path}/run/{name}: "), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list((tmp_path / "run").glob("*.partial")) and not (tmp_path / "run/.lock").exists()


def test_settings_for_a_full_disk(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / "config.partial").symlink_to("/dev/full")
    with pytest.raises(Failure, match=r"config\.toml: No space left"):
        write_text(folder.config, "model = 1")
    assert not list(tmp_path.iterdir())


def test_rows_for_a_full_disk(tmp_path):
    folder = RunFolder(tmp_path)
    folder.metrics.symlink_to("/dev/full")
    with pytest.raises(Failure, match=r"metrics\.csv: No space left"):
        folder.append({"iteration": 1, "seconds": 0.0})


CASES = [
    ("copying", "scornn"),
    ("adding", "scornn"),
    ("copying", "scurnn"),
    ("adding", "lstm"),
    ("adding", "full-capacity-urnn"),
]


@pytest.mark.parametrize(("task", "model"), CASES)
def test_a_resumed_run_equals_an_uninterrupted_one(isometry, tmp_path, task, model):
    """Metrics and checkpoint are bitwise equal; with dropout torch's generator matters too."""
    options = ("train", task, "--model", model, *TINY, "--set", "num_layers=2", "--set", "dropout=0.5")
    isometry(*options, "--iterations", 24, "--out", "whole")
    isometry(*options, "--iterations", 13, "--out", "cut")  # 13: a last row that the whole run does not have
    status, _, err = isometry("train", "--resume", "cut", "--iterations", 24)
    assert (status, err) == (0, [])
    same_run(tmp_path / "cut", tmp_path / "whole")
    rows = [row["iteration"] for row in metrics(tmp_path / "cut")]
    assert rows == ["1", "10", "20", "24"], "the mean of the row 20 begins before the cut"
    assert (tmp_path / "cut" / "config.toml").read_text() == (tmp_path / "whole" / "config.toml").read_text()


def test_resume_of_a_finished_run_says_so(isometry):
    isometry("train", "copying", "--model", "rnn", *TINY, "--iterations", 2, "--out", "run")
    status, out, err = isometry("train", "--resume", "run")
    assert (status, err) == (0, []) and "2 iterations are done" in out


def test_resume_takes_no_other_settings(refused, isometry):
    """Changes that would affect the numbers are errors, by an option or by --set; so is a folder without a run."""
    isometry("train", "copying", "--model", "scornn", *TINY, "--iterations", 2, "--out", "run")
    for options in (
        ("--hidden", 7),
        ("--lr", 0.5),
        ("--set", "negative_ones=1"),
        ("--out", "other"),
        ("--seed", 1),
        ("--model", "rnn"),
    ):
        assert "--resume" in refused("train", "--resume", "run", *options), options
    assert "nowhere" in refused("train", "--resume", "nowhere")


def test_a_run_made_on_a_gpu_goes_on_without_one(isometry, tmp_path):
    """With --backend cpu, which the folder then says; without that option the GPU is missing."""
    options = ("train", "copying", "--model", "scornn", *TINY)
    isometry(*options, "--iterations", 2, "--out", "run")
    config = tmp_path / "run/config.toml"
    config.write_text(config.read_text().replace('backend = "cpu"', 'backend = "gpu"'))
    again = ("train", "--resume", "run", "--iterations", "4")
    done = run([sys.executable, "-m", "isometry", *again], check=False, cwd=tmp_path, ISOMETRY_GPU_ADAPTER="none-such")
    assert done.returncode == 2 and "config.toml: backend gpu: " in done.stderr and len(metrics(tmp_path / "run")) == 2
    assert isometry(*again, "--backend", "cpu")[::2] == (0, [])
    assert 'backend = "cpu"' in config.read_text()
    isometry(*options, "--iterations", 4, "--out", "whole")
    assert metrics(tmp_path / "run")[-1] == metrics(tmp_path / "whole")[-1]


def test_a_damaged_checkpoint_is_a_failure(refused, isometry, tmp_path):
    isometry("train", "copying", "--model", "scornn", *TINY, "--iterations", 2, "--out", "run")
    path = tmp_path / "run" / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    assert "checkpoint" in refused("train", "--resume", "run", "--iterations", 3, status=1)
    path.unlink()
    assert "checkpoint" in refused("train", "--resume", "run", "--iterations", 3, status=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_cleanly_and_the_run_goes_on(isometry, tmp_path, number):
    """Exit status 130, the four files for whom the umask allows, and a resumed run that equals an uninterrupted one."""
    options = [str(o) for o in ("train", "copying", "--model", "scornn", *TINY, "--log-every", 1)]
    command = [sys.executable, "-m", "isometry", *options, "--iterations", "1000000", "--out", "run"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait(process, tmp_path / "run", 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, "") and out.endswith("isometry train --resume run\n")
    folder = tmp_path / "run"
    assert {p.name for p in folder.iterdir()} == FILES - {"scores.toml"}
    assert len({p.stat().st_mode for p in folder.iterdir()}) == 1
    done = int(metrics(folder)[-1]["iteration"])
    total = done + 3
    assert isometry("train", "--resume", "run", "--iterations", total)[0] == 0
    isometry(*options, "--iterations", total, "--out", "whole")
    assert metrics(folder) == metrics(tmp_path / "whole")


def test_a_killed_run_goes_on_from_its_last_checkpoint(isometry, tmp_path):
    """Rows behind the checkpoint, and half a row, are dropped and computed again."""
    options = ("train", "adding", "--model", "ornn", *TINY, "--log-every", 2)
    isometry(*options, "--iterations", 6, "--out", "early")
    isometry(*options, "--iterations", 12, "--out", "late")
    shutil.copy(tmp_path / "early" / "checkpoint.safetensors", tmp_path / "late")
    with open(tmp_path / "late" / "metrics.csv", "rb+") as file:
        file.seek(-7, os.SEEK_END)
        file.truncate()
    assert isometry("train", "--resume", "late")[0] == 0
    isometry(*options, "--iterations", 12, "--out", "whole")
    assert metrics(tmp_path / "late") == metrics(tmp_path / "whole")


@pytest.mark.parametrize("name", ["checkpoint", "curves"])
def test_a_run_killed_while_it_writes_its_first_checkpoint_or_its_curves(isometry, tmp_path, monkeypatch, name):
    """--resume begins at the start, or draws what is missing."""
    options = ("train", "copying", "--model", "scornn", *TINY, "--iterations", 2, "--out", "run")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*{"checkpoint": (checkpoint, "save"), "curves": (plots, "curves")}[name], killed)
        assert isometry(*options)[0] == 130
    assert isometry("train", "--resume", "run")[::2] == (0, [])
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES


SIZES = ((40, 140), (40, 0), (0, 0))  # rows and columns


def test_a_terminal_gets_a_bar(tmp_path):
    """Including a terminal that does not report its size, or only half of it."""
    options = [str(o) for o in ("train", "copying", "--model", "scornn", *TINY, "--iterations", 30)]
    command = [sys.executable, "-m", "isometry", *options]
    for k, size in enumerate(SIZES):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        (tmp_path / str(k)).mkdir()
        with subprocess.Popen(command, cwd=tmp_path / str(k), stdin=slave, stdout=slave, stderr=slave) as process:
            os.close(slave)
            text = read_all(master)
        assert process.returncode == 0, text
        bar = next(line for line in reversed(text.replace("\r", "\n").splitlines()) if "30/30" in line)
        assert "100%, " in bar and "it/s" in bar and "copying-scornn-0" in bar
        assert all(word in bar for word in ("loss", "baseline", "e(W)"))


@pytest.mark.parametrize(("columns", "rest"), [(80, "loss 1.25 ba"), (100, "loss 1.25 baseline 4.79 e(W) 0.5")])
def test_a_narrow_terminal_shows_the_scores(columns, rest):
    row = {"loss": 1.25, "baseline": 4.787, "orthogonality_error": 0.5, "accuracy": 0.0123}
    row |= {"accuracy_within": 0.0123, "accuracy_beyond": 0.0123}
    said = {"postfix": figures(scores_first(row)), "prefix": "permutations-deltaproduct-0", "bar_format": BAR}
    text = tqdm.format_meter(50, 100, 10.0, ncols=columns, **said)
    assert text == f" 50%, accuracy 0.0123 accuracy_within 0.0123 accuracy_beyond 0.0123 {rest}"


def read_all(descriptor):
    """Everything written to a terminal until its last writer closes it."""
    chunks = []
    while True:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # Linux reports the closed other side as an error
            chunk = b""
        if not chunk:
            os.close(descriptor)
            return b"".join(chunks).decode()
        chunks.append(chunk)
