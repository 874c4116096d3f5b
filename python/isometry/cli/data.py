"""The data of --data: which files count, and a digest by which a run knows its data again, wherever they lie."""

import hashlib
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

APPLE = "__MACOSX"  # a folder that macOS adds to archives, with a small file for each file


def digest(data: str | None, names: str = "*") -> str | None:
    """SHA-256 of the file, or of the names and contents of the files of a folder whose names match, in lower case; None
    without data, and for a pipe, which cannot be read twice.
    """
    path = Path(data or "")
    if data is None or not (path.is_file() or path.is_dir()):
        return None
    if path.is_file():
        return _content(path).hex()
    whole = hashlib.sha256()
    for file in files(path):
        if fnmatchcase(file.name.lower(), names):
            whole.update(hashlib.sha256(os.fsencode(file.relative_to(path).as_posix())).digest() + _content(file))
    return whole.hexdigest()


def files(folder: Path) -> list[Path]:
    """The regular files of a folder and of those below it, links too, sorted: without hidden ones, those that macOS
    adds to archives, and the folders of runs.
    """
    return sorted(_below(folder, ()))


def _below(folder: Path, above: tuple[str, ...]) -> Iterator[Path]:
    real = os.path.realpath(folder)
    if real in above:  # a link to a folder that it lies in
        return
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.name.startswith(".") and entry.name != APPLE]
    except OSError:  # it cannot be listed
        return
    for entry in found:
        path = folder / entry.name
        if path.is_file():
            yield path
        # Folders written by `train` or `compare` are skipped: they, or folders in them, hold the settings of a run.
        elif path.is_dir() and not any(map(_settings, (path / "config.toml", *path.glob("*/config.toml")))):
            yield from _below(path, (*above, real))


def _settings(file: Path) -> bool:
    try:
        with open(file, "rb") as opened:
            return opened.read(10) == b"isometry ="
    except OSError:
        return False


def _content(file: Path) -> bytes:
    """The digest of a file, that of no byte where it cannot be read: what a task needs it reads itself, and says."""
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return hashlib.sha256().digest()
