"""Every path that a file system takes is one of a run, on every terminal; what does not begin leaves nothing behind."""

import errno
import io
import os
import shlex
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

import isometry as iso
from cli_runs import FILES, TINY
from isometry.cli import main
from isometry.cli.compare import process
from isometry.cli.compare.plan import plan
from isometry.cli.compare.pool import Pool
from isometry.cli.parser import make_parser
from isometry.cli.tasks.adding import Adding
from task_data import text

TRAIN = ("train", "adding", "--model", "rnn", *TINY)
NAMES = {
    "no UTF-8": b"caf\xe9",
    "cut UTF-8": b"\xf0\x9f",
    "a surrogate in UTF-8": b"\xed\xa0\x80",
    "accents": "résultats".encode(),
    "combining": "re\u0301".encode(),
    "four bytes": "\U0001f40d".encode(),
    "right to left": "שלום \u202e".encode(),
    "spaces": b"  a  b ",
    "a newline": b"a\nb",
    "ends of lines": b"\r\x0b\x0c\x1b[31m",
    "a tab and a bell": b"\t\x07\x7f",
    "a dash": b"-x",
    "two dashes": b"--resume",
    "an assignment": b"hidden=3",
    "quotes": b"'\"`$(true)",
    "a backslash": b"\\udce9\\",
    "a pattern": b"[a]*?{b}",
    "a comment": b"#~",
    "a home": b"~",
    "percents": b"%s%20{x}",
    "a colon": b"task:Class",
    "dots": b"...",
    "255 bytes": b"n" * 255,
    "255 bytes of others": b"\xff" * 255,
}
HOLDS = {name: os.fsdecode(data).isascii() or not any("\udc80" <= c <= "\udcff" for c in os.fsdecode(data))
         for name, data in NAMES.items()}  # fmt: skip


class Terminal(io.TextIOWrapper):
    """Standard output in some encoding, as PYTHONIOENCODING or a locale sets it."""

    def __init__(self, encoding):
        super().__init__(io.BytesIO(), encoding=encoding, errors="strict")

    def said(self):
        self.flush()
        return self.buffer.getvalue()


@pytest.fixture
def terminal(monkeypatch):
    """terminal(encoding, ...) -> what a command of these arguments, which succeeds, writes to such an output."""

    def call(encoding, *arguments):
        stream = Terminal(encoding)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            assert main([*map(str, arguments)]) == 0
        assert stream.errors == "strict"
        return stream.said()

    return call


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_every_name(isometry, terminal, name):
    """On a terminal that has ASCII alone a run begins, goes on and is loaded there; what is printed is the path."""
    path = os.fsdecode(NAMES[name])
    assert NAMES[name] + b": 67 parameters" in terminal("ascii", *TRAIN, "--iterations", 1, f"--out={path}")
    assert set(os.listdir(path)) == FILES
    assert isometry("train", f"--resume={path}", "--iterations", 2)[::2] == (0, [])
    assert iso.load_run(path).metrics["iteration"].tolist() == [1, 2]


@pytest.mark.usefixtures("isometry")
def test_commands_in_folders_of_every_name(terminal, tmp_path):
    """What is printed is what a shell passes on, in every encoding that has ASCII."""
    for name, data in NAMES.items():
        words = ("compare", "adding", "--models", "rnn", "--seeds", 1, *TINY, f"--out={os.fsdecode(data)}")
        said = terminal("utf-8", *words, "--commands")
        assert said == terminal("ascii", *words, "--commands")
        split = subprocess.run(["bash", "-c", b"printf '%s\\0' " + said], capture_output=True, check=True).stdout
        program, *found = [os.fsdecode(word) for word in split.split(b"\0")[:-1]]
        options = make_parser().parse_args(found)
        assert (program, options.out) == ("isometry", os.path.join(os.fsdecode(data), "rnn-0")), name
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["option", "set", "config", "folder"])
def test_data_of_every_name(tmp_path, isometry, name, way):
    """Data are read from there, and found again; a path that config.toml cannot hold is refused by name."""
    path = tmp_path / os.fsdecode(NAMES[name])
    if way == "folder":
        path.mkdir()
        data = text(path)
    else:
        data = text(tmp_path).rename(path)
    word = os.path.relpath(data, tmp_path)
    given = {"set": ["--set", f"data={word}"]}.get(way, [f"--data={word}"])
    if way == "config":
        if not HOLDS[name]:
            return
        import tomli_w

        (tmp_path / "c.toml").write_text(tomli_w.dumps({"data": word}))
        given = ["--config", "c.toml"]
    if way == "set" and word != word.strip():
        return  # blanks around a value of --set do not count
    before = sorted(tmp_path.rglob("*"))
    command = ("train", "characters", "--model", "rnn", *TINY, *given)
    status, out, err = isometry(*command, "--iterations", 0 if HOLDS[name] and way != "option" else 1, "--out", "run")
    if not HOLDS[name]:
        assert (status, out, len(err)) == (2, "", 1) and "data must be text in UTF-8" in err[0], err
    elif way == "option":
        assert (status, err) == (0, []) and iso.load_run("run").settings["data"] == str(data)
        return
    else:
        assert status == 2 and "--iterations must" in err[0]
    assert sorted(tmp_path.rglob("*")) == before


class Corpus(Adding):
    """A task with a text and a list among its keywords."""

    def __init__(self, *, length, batch, corpus="", parts=()):
        super().__init__(length=length, batch=batch)
        self.title = f"{corpus} {parts}"


def test_settings_that_config_toml_cannot_hold(refused, tmp_path, monkeypatch):
    """Refused by name, wherever they stand; nothing is written."""
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(Corpus=Corpus))
    byte = os.fsdecode(b"\xe9")
    for name, value in (
        ("corpus", byte),
        ("corpus", f"a{byte}b"),
        ("parts", f"['{byte}']"),
        ("parts", f"[['{byte}']]"),
    ):
        words = ("train", "--task", "mine:Corpus", "--model", "rnn", *TINY, "--iterations", 1, "--set")
        assert f"--set {name} must be text in UTF-8" in refused(*words, f"{name}={value}")
    assert not list(tmp_path.iterdir())


LONG = {
    "a name": "x" * 256,
    "a name below new folders": "new/folders/" + "x" * 256,
    "a path": "/".join(["x" * 200] * 21),
    "files below": "/".join(["x" * 200] * 20) + "/" + "y" * 40,
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("option", ["--out", "--resume", "--data", "--config", "compare --out", "compare"])
def test_paths_that_are_too_long(isometry, tmp_path, name, option):
    path = LONG[name] if name == "a name" or "below new" in name else os.path.join(tmp_path, LONG[name])
    path = path[: 4095 - 5] if name == "files below" else path
    command = {
        "--out": (*TRAIN, "--iterations", 1, "--out", path),
        "--resume": ("train", "--resume", path),
        "--data": ("train", "characters", "--model", "rnn", "--data", path),
        "--config": ("train", "--config", path),
        "compare --out": ("compare", "adding", "--models", "rnn", *TINY, "--iterations", 1, "--out", path),
        "compare": ("compare", path),
    }[option]
    status, out, err = isometry(*command)
    assert status in (1, 2) and out == "" and len(err) == 1 and "ISOMETRY_TRACEBACK" not in err[0], err
    assert path[-40:] in err[0], err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--out", "compare --out"])
@pytest.mark.parametrize("place", ["file", "file/run", "link", "loop", "fifo", "/proc/run", "/dev/null/x"])
def test_folders_that_cannot_be(isometry, tmp_path, option, place):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    before = sorted(tmp_path.rglob("*"))
    compare = ("compare", "adding", "--models", "rnn", "--seeds", 1, *TINY)
    command = (*(TRAIN if option == "--out" else compare), "--iterations", 1, "--out", place)
    status, out, err = isometry(*command)
    assert status in (1, 2) and out == "" and len(err) == 1 and place in err[0], err
    assert "ISOMETRY_TRACEBACK" not in err[0] and sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("file", ["config.partial", "checkpoint.partial", ".lock"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_run_that_cannot_write_leaves_nothing(isometry, tmp_path, monkeypatch, file, code):
    """Neither its folder nor those above it; what lay there stays."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/note").write_text("of somebody")
    before = sorted(tmp_path.rglob("*"))
    name = {"config.partial": "config.toml", "checkpoint.partial": "checkpoint.safetensors"}.get(file, "config.toml")

    def fails(*_, **__):
        raise OSError(code, os.strerror(code))

    patched = {
        "config.partial": "isometry.cli.train.write_text",
        "checkpoint.partial": "isometry.cli.checkpoint.save_file",
    }
    for out in ("new/folder/run", "kept", None):
        with monkeypatch.context() as patch:
            if file == ".lock":
                patch.setattr("os.replace", fails)
            elif file == "config.partial":
                patch.setattr("pathlib.Path.write_text", fails)
            else:
                patch.setattr(patched[file], fails)
            words = () if out is None else ("--out", out)
            status, _, err = isometry(*TRAIN, "--iterations", 1, *words)
        assert status == 1 and len(err) == 1 and f"{name}: {os.strerror(code)}" in err[0], err
        assert sorted(tmp_path.rglob("*")) == before
    assert isometry(*TRAIN, "--iterations", 1, "--out", "kept")[0] == 0


@pytest.mark.parametrize("data", [b"caf\xe9\n", b"\xff\xfe\x00\n", "é\n".encode("utf-16"), b"\x80" * 70000])
@pytest.mark.parametrize("status", [0, 1])
def test_a_run_may_print_anything(tmp_path, monkeypatch, capfd, data, status):
    """Bytes that are no text hold up neither the comparison nor its end."""
    (run,) = plan({"task": "adding", "iterations": "1"}, ["rnn"], [0], None, tmp_path)
    script = f"import sys; sys.stdin.buffer.read(4); sys.stdout.buffer.write({data[:9]!r} * {len(data) // 9 + 1})"
    script += f"; sys.exit({status})"
    popen = subprocess.Popen
    monkeypatch.setattr(process.subprocess, "Popen", lambda _, **given: popen([sys.executable, "-c", script], **given))
    pool = Pool(1, 1, seconds=60)
    assert pool.run({"rnn-0": run})
    assert pool.failed == ({} if status == 0 else {"rnn-0": "ended with status 1"})
    assert "\\x" in capfd.readouterr().err or b"\x00" in data


def test_an_error_of_what_shows_a_run(tmp_path, monkeypatch):
    """It ends the wait for the run."""
    (run,) = plan({"task": "adding", "iterations": "1"}, ["rnn"], [0], None, tmp_path)
    popen = subprocess.Popen
    monkeypatch.setattr(
        process.subprocess, "Popen", lambda _, **given: popen([sys.executable, "-c", "print(1)"], **given)
    )

    def fails(_):
        raise UnicodeError("no such character")

    monkeypatch.setattr("isometry.cli.compare.pool.show", fails)
    pool = Pool(1, 1, seconds=60)
    assert pool.run({"rnn-0": run}) and pool.failed == {"rnn-0": "UnicodeError: no such character"}


@pytest.mark.usefixtures("here")
def test_a_comparison_in_a_folder_of_no_utf_8(isometry, tmp_path):
    """Its table is text in UTF-8, and the same command replaces it."""
    path = os.fsdecode(b"-caf\xe9")
    command = ("compare", "adding", "--models", "rnn", "--seeds", 1, *TINY, f"--out={path}")
    for iterations in (1, 2):
        assert isometry(*command, "--iterations", iterations)[0] == 0
    shutil.copytree(os.path.join(path, "rnn-0"), os.path.join(path, "again"))
    status, out, _ = isometry("compare", f"./{path}", "--out", path[1:])
    assert (
        status == 0
        and "does not count" in out
        and (tmp_path / path[1:] / "table.md").read_text().isprintable() is False
    )
    for _ in range(2):
        assert isometry("compare", f"./{path}", "--out", path[1:])[0] == 0


def test_the_command_that_goes_on(isometry, tmp_path, monkeypatch):
    """After ctrl-C the printed command is one that a shell takes."""
    from isometry.cli import loop

    monkeypatch.setattr(loop.Interrupt, "__init__", lambda self: vars(self).update(requested=True, also=lambda: None))
    status, out, _ = isometry(*TRAIN, "--out=-a 'b'")
    assert status == 130
    words = shlex.split(out.splitlines()[-1].partition("goes on: ")[2])
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert isometry(*words[1:], "--iterations", 3)[0] == 0
