"""A small run, and its folder with one file damaged: cut, with a wrong byte, with a name turned around; what loads or
resumes it must give a result or the documented error, which names the folder.
"""

import contextlib
import io
import re
import shutil

import isometry as iso
from cli_runs import FILES
from isometry.cli import main

WORD = re.compile(rb"[A-Za-z_]{3,}")
HEADER = 8  # bytes of checkpoint.safetensors that hold the length of its header


def trained(folder):
    """The folder of a run with a network that was best, RMSprop's squares and Adam's steps."""
    options = ("--length", 20, "--hidden", 4, "--threads", 1, "--iterations", 6, "--log-every", 2)
    command = ("train", "waveform", "--model", "ornn", *options, "--recurrent-optimizer", "rmsprop", "--out", folder)
    assert main([*map(str, command)]) == 0
    return folder


def cuts(data, rng, most):
    for k in {0, 1, len(data) - 1, *rng.integers(0, len(data), most).tolist()}:
        yield data[:k]


def flips(data, rng, most):
    for k in rng.integers(0, len(data), most).tolist():
        yield data[:k] + bytes([data[k] ^ int(rng.integers(1, 256))]) + data[k + 1 :]


def renames(data, _, most):
    """Every word of the file, or of the checkpoint's header, turned around."""
    text = HEADER + int.from_bytes(data[:HEADER], "little") if data[-1:] != b"\n" else len(data)
    for found in list(WORD.finditer(data, 0, text))[:most]:
        yield data[: found.start()] + found[0][::-1] + data[found.end() :]


def damaged(whole, folder, rng, how, most):
    """The folder with one of its files damaged, again and again."""
    for name in sorted(FILES - {"curves.png"}):
        for data in how((whole / name).read_bytes(), rng, most):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            (folder / name).write_bytes(data)
            yield name


def load_run(folder):
    """Whether the run is refused."""
    try:
        iso.load_run(folder)
    except (ValueError, RuntimeError) as error:
        assert str(folder) in str(error), repr(error)
        return True
    return False


def resume(folder):
    """The exit status of `isometry train --resume`; an error is one line."""
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        status = main(["train", "--resume", str(folder), "--iterations", "7"])
    lines = err.getvalue().splitlines()
    said = len(lines) == 1 and str(folder) in lines[0] and "ISOMETRY_TRACEBACK" not in lines[0]
    assert not lines if status == 0 else status in (1, 2) and said, f"status {status}: {lines}"
    return status
