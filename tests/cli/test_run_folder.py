"""The folder of a run: one process at a time, and what a disk without room says."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from cli_runs import TINY, metrics, wait
from isometry.cli.errors import Failure, UsageError
from isometry.cli.files import write_text
from isometry.cli.run_folder import RunFolder
from subprocesses import script

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
