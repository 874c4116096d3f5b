"""Files that no run has written are neither replaced nor removed: commands refuse, and say what lies there."""

import os

import pytest

from cli_runs import FILES, TINY, contents, metrics
from isometry.cli.lock import locked

TRAIN = ("train", "copying", "--model", "scornn", *TINY, "--iterations", 3)
COMPARE = ("compare", "copying", "--models", "scornn", "--seeds", 1, *TINY, "--iterations", 3, "--out", "all")


@pytest.mark.parametrize("name", [*sorted(FILES - {"config.toml"}), "config.partial", "checkpoint.partial"])
def test_a_new_run_replaces_nothing(refused, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("of somebody")
    assert f"--out out holds {name} of something else" in refused(*TRAIN, "--out", "out")


def test_a_finished_run_without_its_settings(refused, isometry, tmp_path):
    """Their file was renamed: neither `train` nor `compare` begins in its folder."""
    folder = tmp_path / "all/scornn-0"
    isometry(*TRAIN, "--out", folder)
    (folder / "config.toml").rename(folder / "config.old.toml")
    assert "metrics.csv, curves.png, checkpoint" in refused(*TRAIN, "--out", folder)
    assert "metrics.csv, curves.png, checkpoint" in refused(*COMPARE)


def test_a_finished_run_without_its_checkpoint(refused, isometry, tmp_path):
    """It counts as it is; where it would have to go on, the comparison is refused."""
    folder = tmp_path / "all/scornn-0"
    isometry(*TRAIN, "--out", folder)
    (folder / "checkpoint.safetensors").unlink()
    before = contents(folder)
    status, out, err = isometry(*COMPARE)
    assert status == 0 and "0 of 1 runs to do" in err[0] and "| scornn | 6 | – | 1 |" in out
    assert contents(folder) == before
    message = refused(*COMPARE, "--iterations", 5)
    assert "all/scornn-0 cannot go on: 3 of 5 updates are done" in message
    (folder / "metrics.csv").unlink()
    assert "0 of 3 updates are done" in refused(*COMPARE)
    assert "no checkpoint" in refused("train", "--resume", folder, status=1)


@pytest.mark.usefixtures("here")
def test_a_run_that_has_only_its_settings_begins(isometry, tmp_path):
    """It was killed before its first checkpoint."""
    folder = tmp_path / "all/scornn-0"
    isometry(*TRAIN, "--out", folder)
    rows = metrics(folder)
    for name in FILES - {"config.toml"}:
        (folder / name).unlink()
    status, _, err = isometry(*COMPARE)
    assert status == 0 and "1 of 1 runs to do" in err[0]
    assert metrics(folder) == rows and {path.name for path in folder.iterdir()} == FILES


@pytest.mark.parametrize("text", ["", "isometry = "])
def test_settings_that_a_kill_has_cut(isometry, tmp_path, text):
    """A new run begins where nothing else lies."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/config.partial").write_text(text)
    assert isometry(*TRAIN, "--out", "out")[0] == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


@pytest.mark.parametrize("name", ["table.md", "table.partial", "curves.png"])
def test_a_comparison_replaces_nothing(refused, isometry, tmp_path, name):
    isometry(*TRAIN, "--out", "run")
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / name).write_text("of somebody")
    assert f"--out all holds a {name} of something else" in refused(*COMPARE)
    status, out, err = isometry("compare", "run", "--out", "all")
    assert status == 2 and "| scornn |" in out and name in err[0]
    assert (tmp_path / "all" / name).read_text() == "of somebody" and len(list((tmp_path / "all").iterdir())) == 1


def test_a_comparison_in_the_folder_of_a_run(isometry, tmp_path):
    """Its curves.png is the run's; the second of its own tables replaces the first."""
    isometry(*TRAIN, "--out", "run")
    before = (tmp_path / "run/curves.png").read_bytes()
    assert isometry("compare", "run", "--out", "run")[0] == 2
    assert (tmp_path / "run/curves.png").read_bytes() == before
    for _ in range(2):
        assert isometry("compare", "run", "--out", "picture")[::2] == (0, [])


def test_a_run_without_rows_is_said_to_be_left_out(isometry, tmp_path):
    for seed in (0, 1):
        isometry(*TRAIN, "--seed", seed, "--out", f"runs/{seed}")
    (tmp_path / "runs/1/metrics.csv").unlink()
    status, out, err = isometry("compare", "runs")
    assert status == 0 and "| scornn |" in out and err == ["runs/1 is left out: there is no metrics.csv"]


@pytest.mark.parametrize("kind", ["link", "fifo", "text"])
def test_a_lock_that_is_none(refused, isometry, tmp_path, kind):
    """A link's target keeps its text, a pipe does not make the command wait."""
    isometry(*TRAIN, "--out", "run")
    lock = tmp_path / "run/.lock"
    (tmp_path / "precious").write_text("kept")
    if kind == "link":
        lock.symlink_to(tmp_path / "precious")
    elif kind == "fifo":
        os.mkfifo(lock)
    else:
        lock.write_text("of somebody")
    message = refused("train", "--resume", "run", "--iterations", 4, status=1)
    assert "run/.lock is in the way" in message and os.path.lexists(lock)


@pytest.mark.usefixtures("here")
def test_two_comparisons_of_one_folder(refused, isometry, tmp_path):
    """The second one is refused until the first has ended."""
    (tmp_path / "all").mkdir()
    with locked(tmp_path / "all", ""):
        assert "all: another comparison works here" in refused(*COMPARE, status=1)
    assert isometry(*COMPARE)[0] == 0
    assert {path.name for path in (tmp_path / "all").iterdir()} == {"scornn-0", "table.md", "curves.png"}
