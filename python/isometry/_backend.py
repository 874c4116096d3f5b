"""The backend of calls: named by a keyword, else by `use_backend`, else the CPU."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Literal, TypeGuard

from isometry import _check, _threads

#: Where a call computes: so many threads of the CPU, or the GPU.
Place = int | Literal["gpu"]

_BACKEND = ContextVar("isometry_backend", default="cpu")


def use_backend(name: str) -> AbstractContextManager[None]:
    """Make a backend the default of all calls in a block, of both faces and of the layers.

    Parameters
    ----------
    name
        "cpu" or "gpu". The keyword `backend=` of a call wins over it.

    Raises
    ------
    ValueError
        If there is no such backend.
    NotImplementedError
        If it cannot serve.

    Examples
    --------
    >>> import isometry as iso
    >>> with iso.use_backend("cpu"):
    ...     w = iso.Cayley.random(4, rng=0).matrix()
    """
    _check.backend(name)
    return _within(name)


@contextmanager
def _within(name: str) -> Iterator[None]:
    token = _BACKEND.set(name)
    try:
        yield
    finally:
        _BACKEND.reset(token)


def serve(backend: str | None) -> Place:
    """Where a call computes; refuses a backend that does not exist or cannot serve."""
    if type(backend) is not str or backend != "cpu":
        name = _BACKEND.get() if backend is None else backend
        _check.backend(name)
        if name == "gpu":
            return "gpu"
    return _threads.get_num_threads()


def named(place: Place) -> str:
    """The backend that computes there."""
    return "gpu" if place == "gpu" else "cpu"


def current() -> str:
    """The backend in force."""
    return _BACKEND.get()


def elsewhere(backend: str | None) -> TypeGuard[str]:
    """Whether a keyword names another backend than the one in force; refuses one that does not exist."""
    if backend is None:
        return False
    _check.backend(backend)
    return backend != _BACKEND.get()


def served(backend: str | None) -> AbstractContextManager[None]:
    """The backend that a keyword names, in force for a block."""
    return _within(backend) if elsewhere(backend) else nullcontext()


def only_cpu(backend: str | None) -> None:
    """Refuse a keyword that names a backend on which the function has no kernels."""
    if elsewhere(backend) and backend == "gpu":
        raise NotImplementedError("backend='gpu': this function has no kernels on the GPU; leave it to the CPU")
