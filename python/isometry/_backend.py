"""The backend of calls: named by a keyword, else by `use_backend`, else the CPU."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import get_ident
from typing import Literal

from isometry import _threads
from isometry._rules import check

#: Where a call computes: the number of threads on the CPU, or the GPU.
Place = int | Literal["gpu"]

#: The open blocks, the innermost last: the thread that entered each, since a context can be copied to another, and its
#: backend.
_BLOCKS: ContextVar[tuple[tuple[int, str], ...]] = ContextVar("isometry_backend", default=())


def current() -> str:
    """The backend in force. Compiled code must not read it: older releases of dynamo cannot trace context variables."""
    if blocks := _BLOCKS.get():
        thread = get_ident()
        for entered, name in reversed(blocks):
            if entered == thread:
                return name
    return "cpu"


def use_backend(name: str) -> AbstractContextManager[None]:
    """Make a backend the default of all calls in a block, for NumPy, torch and the layers.

    Parameters
    ----------
    name
        "cpu" or "gpu". The keyword `backend=` of a call overrides it.

    Raises
    ------
    ValueError
        If there is no such backend.

    Notes
    -----
    The block may contain calls of functions that `torch.compile` made, but not be inside one. It applies to its own
    thread, not to threads started inside; a backward pass runs where its forward pass did. Blocks may end in any order.

    Entering the block opens no device: what the GPU cannot do is an error of the call inside it, a TypeError for
    float64 and complex128, a NotImplementedError without an adapter or in a build without GPU support, a RuntimeError
    for a lost device, too little memory, or an array too large for the GPU.

    Examples
    --------
    >>> import isometry as iso
    >>> with iso.use_backend("cpu"):
    ...     w = iso.Cayley.random(4, rng=0).matrix()
    """
    check.backend(name)
    return _within(name)


@contextmanager
def _within(name: str) -> Iterator[None]:
    block = get_ident(), name
    _BLOCKS.set((*_BLOCKS.get(), block))
    try:
        yield
    finally:
        _BLOCKS.set(tuple([other for other in _BLOCKS.get() if other is not block]))


def serve(backend: str | None) -> Place:
    """Where a call computes; ValueError for a backend that does not exist."""
    if type(backend) is not str or backend != "cpu":
        name = current() if backend is None else backend
        check.backend(name)
        if name == "gpu":
            return "gpu"
    return _threads.get_num_threads()


def named(place: Place) -> str:
    """The backend that computes there."""
    return "gpu" if place == "gpu" else "cpu"


def only_cpu(backend: str | None) -> None:
    """Refuse `backend="gpu"` for a function without GPU kernels, which runs on the CPU whatever `use_backend` says."""
    if backend is not None:
        check.backend(backend)
        if backend == "gpu":
            raise NotImplementedError("backend='gpu': this function has no kernels on the GPU; leave it to the CPU")
