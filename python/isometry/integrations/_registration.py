"""Functions of another package, replaced as long as a registration lasts.

Objects of that package look their functions up at every call, so a replacement serves those that exist already as well
as later ones, and instances, copies and saved models hold nothing of it.
"""

from collections.abc import Callable, Iterable
from inspect import getattr_static, signature
from threading import RLock
from typing import Any, NamedTuple, Self

import torch

Function = Callable[..., Any]


class Swap(NamedTuple):
    """A function of a module or class, and what stands in its place."""

    owner: Any
    name: str
    new: Any


class Registration:
    """The result of `register`: `remove()`, or the end of a `with` block, restores the functions of the package.

    See Also
    --------
    register : makes one.
    :doc:`delta-rule` : models of transformers on these kernels.
    """

    def __init__(self, end: Callable[[Any], None]) -> None:
        self._end = end

    def remove(self) -> None:
        """End this registration; with the last one, the functions of the package are in their places again."""
        self._end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Swaps:
    """The registrations of one package, which all threads share."""

    def __init__(self, find: Callable[[], Iterable[Swap]]) -> None:
        self._find = find  # raises for a version that is not known
        self._lock = RLock()
        self._held: set[Registration] = set()
        self._replaced: list[tuple[Swap, Any]] = []

    def add(self) -> Registration:
        """One more registration; the first replaces all functions, or, where one is not known, none."""
        registration = Registration(self.remove)
        with self._lock:
            if not self._held:
                found = [(swap, getattr_static(swap.owner, swap.name)) for swap in self._find()]
                for swap, original in found:
                    setattr(swap.owner, swap.name, swap.new)
                    self._replaced.append((swap, original))
            self._held.add(registration)
        return registration

    def remove(self, registration: Registration) -> None:
        """The end of a registration."""
        with self._lock:
            if registration in self._held:
                self._held.remove(registration)
                if not self._held:
                    self._restore()

    def _restore(self) -> None:
        for swap, original in self._replaced:
            if (
                getattr_static(swap.owner, swap.name) is swap.new
            ):  # else another package has replaced it, and may call it
                setattr(swap.owner, swap.name, original)
        self._replaced.clear()


def known(owner: Any, name: str, arguments: tuple[str, ...], unknown: Callable[[str], Exception]) -> Function:
    """A function of a module or class, if it takes these arguments besides ``self``."""
    where = owner.__name__
    function: Function | None = getattr(owner, name, None)
    if function is None:
        raise unknown(f"{where} has no {name}")
    # The package `kernels` makes it a module without parameters, and may give the instance another `forward`.
    call = type(function).forward if isinstance(function, torch.nn.Module) else function
    if tuple(key for key in signature(call).parameters if key != "self") != arguments:
        raise unknown(f"{name} of {where} takes {signature(call)}")
    return function
