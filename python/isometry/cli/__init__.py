"""The command line: `isometry train`, `isometry compare`, `isometry info`.

Exit status: 0 success, 1 a failure, 2 a wrong argument, 130 after ctrl-C. Every message is one line on standard
error. Torch and the other extras are imported only by the commands that need them.
"""

import codecs
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper

from isometry.cli.errors import FAILURE, INTERRUPTED, SUCCESS, USAGE, Caution, Failure, UsageError
from isometry.cli.parser import make_parser

__all__ = ["main", "reported"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `argv` defaults to the process's arguments."""

    def command() -> int:
        with _printable(), warnings.catch_warnings():
            warnings.simplefilter("default", Caution)
            warnings.showwarning = _warn
            options = make_parser().parse_args(argv)
            status: int = options.run(options)
            return status

    return reported(command)


@contextmanager
def _printable() -> Iterator[None]:
    """Standard output takes every path: what its encoding lacks is written with the bytes that a file system has."""
    stream = sys.stdout
    if not isinstance(stream, TextIOWrapper):  # of a notebook
        yield
        return
    codecs.register_error("isometry.path", _bytes)
    before = stream.errors
    try:
        stream.reconfigure(errors="isometry.path")
    except OSError:  # another file under the same descriptor
        yield
        return
    try:
        yield
    finally:
        if not stream.closed:
            stream.reconfigure(errors=before)


def _bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """The bytes of a character that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return error.object[error.start : error.end].encode("utf-8", "surrogateescape"), error.end


def reported(command: Callable[[], int]) -> int:
    """The exit status of a command; its errors become a line on standard error."""
    try:
        return command()
    except (UsageError, Failure) as error:
        if os.environ.get("ISOMETRY_TRACEBACK"):
            raise
        return _complain(error, USAGE if isinstance(error, UsageError) else FAILURE)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe has gone; nothing more may be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except SystemExit as leave:  # --help and --version; a class of the user's may leave with a message
        if leave.code is None or isinstance(leave.code, int):
            return leave.code or SUCCESS
        return _complain(leave.code, FAILURE)
    except Exception as error:
        if os.environ.get("ISOMETRY_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.filename is not None:
            return _complain(f"{os.fsdecode(error.filename)}: {error.strerror}", FAILURE)
        return _complain(f"{type(error).__name__}: {error} (ISOMETRY_TRACEBACK=1 shows where)", FAILURE)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _complain(f"warning: {message}", SUCCESS)


def _complain(message: object, status: int) -> int:
    print("isometry: " + " ".join(str(message).split()), file=sys.stderr)
    return status
