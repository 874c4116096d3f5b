"""A folder for one process alone: a lock on its file .lock, which ends with the process."""

import errno
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from isometry.cli.errors import Caution, Failure

#: Where no file can be written the first file of a run says so.
UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG)
SECONDS = 0.2  # for a lock whose file is just being removed, or whose process no longer exists


@contextmanager
def locked(folder: Path, other: str) -> Iterator[None]:
    """Hold the folder; a Failure that says `other` while another process has it."""
    from filelock import FileLock, SoftFileLock, Timeout

    file = folder / ".lock"
    if os.path.lexists(file):
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode) or (found.st_size and FileLock is not SoftFileLock):
            raise Failure(f"{file} is in the way: it is not the empty file of a lock")
    lock = FileLock(file, poll_interval=SECONDS / 10)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of filelock, about a lock of another kind
            lock.acquire(timeout=SECONDS)
    except Timeout as error:
        raise Failure(f"{folder}: {other}") from error
    except (OSError, NotImplementedError) as error:
        if getattr(error, "errno", None) not in UNWRITABLE:
            said = f"{folder} cannot be locked ({getattr(error, 'strerror', None) or error}): let no other process"
            warnings.warn(Caution(f"{said} work in it"), stacklevel=3)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes it with the lock, and so does a lock that is the file itself
            if not file.lstat().st_size:
                file.unlink()
        lock.release()
