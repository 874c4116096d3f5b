"""The command line: `isometry train`, `isometry compare`, `isometry info`.

Exit status: 0 success, 1 a failure, 2 a wrong argument, 130 after ctrl-C. Every message is one line on standard
error. Torch and the other extras are imported only by the commands that need them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence

from isometry.cli.errors import FAILURE, INTERRUPTED, SUCCESS, USAGE, Failure, UsageError
from isometry.cli.parser import make_parser

__all__ = ["main", "reported"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `argv` defaults to the process's arguments."""

    def command() -> int:
        options = make_parser().parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            status: int = options.run(options)
            return status

    return reported(command)


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
        return _complain(f"{type(error).__name__}: {error} (ISOMETRY_TRACEBACK=1 shows where)", FAILURE)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _complain(f"warning: {message}", SUCCESS)


def _complain(message: object, status: int) -> int:
    print("isometry: " + " ".join(str(message).split()), file=sys.stderr)
    return status
