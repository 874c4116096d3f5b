"""The thread budget: the user's setting, else ISOMETRY_NUM_THREADS, else a default of the calling face."""

import os

from isometry import _core
from isometry._rules import check

_VARIABLE = "ISOMETRY_NUM_THREADS"
MOST = 1024  # larger values are mistakes, and should not be requested from the system
_chosen: int | None = None


def _from_environment() -> int | None:
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return None
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= MOST:
        raise ValueError(f"{_VARIABLE} must be a number of threads in 1..{MOST}, not {text!r}")
    return int(text)


# Read once: a lookup in the environment would slow down every call.
_environment = _from_environment()
_cores = min(_core.available_parallelism(), MOST)


def chosen() -> int | None:
    """The user's setting, by call or environment; None without one (the torch face then uses torch's)."""
    return _environment if _chosen is None else _chosen


def set_num_threads(k: int) -> None:
    """Set the number of threads that a call may use, for NumPy and for torch.

    Results do not depend on it, to the last bit. Small calls run on the calling thread whatever the budget.

    Parameters
    ----------
    k
        The budget, 1 to 1024.

    Raises
    ------
    TypeError
        If `k` is not an integer.
    ValueError
        If `k` lies outside 1..1024.

    Examples
    --------
    >>> import isometry as iso
    >>> before = iso.get_num_threads()
    >>> iso.set_num_threads(1)
    >>> iso.get_num_threads()
    1
    >>> iso.set_num_threads(before)
    """
    global _chosen
    _chosen = check.within("k", k, 1, MOST)


def get_num_threads() -> int:
    """Return the number of threads that a call on NumPy arrays may use.

    Returns
    -------
    int
        What `set_num_threads` set, else the environment variable ISOMETRY_NUM_THREADS, else the number of cores
        available to the process.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.get_num_threads() >= 1
    True
    """
    return chosen() or _cores
