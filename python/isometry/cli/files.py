"""Files that the commands read and write; errors name the file."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from isometry.cli.errors import Failure
from isometry.readers._file import decoded, regular


def text_of(path: Path, kind: type[Exception] = Failure) -> str:
    """The text of a regular file in UTF-8, which may be empty; an error of this kind if there is none."""
    try:
        return decoded(path, regular(path).read_bytes())
    except OSError as error:
        raise kind(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise kind(str(error).removeprefix("path ")) from error


def toml_of(path: Path, kind: type[Exception] = Failure) -> dict[str, Any]:
    """The table of a TOML file; an error of this kind if there is none."""
    text = text_of(path, kind)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise kind(f"{path} is not a TOML file: {error}") from error


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Turns an OSError inside, such as that of a full disk, which has no file name, into a Failure that names the
    file."""
    try:
        yield
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}") from error


@contextmanager
def made(path: Path) -> Iterator[None]:
    """Makes the folder and those above it; of the new ones those that are empty in the end are removed."""
    new = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    try:
        with named(path):
            path.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in new:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; when complete the file replaces the old one, which stays until then."""
    temporary = path.with_suffix(".partial")
    with named(path):
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file with `replacing`; bytes of a path that are no UTF-8 become escapes."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
