"""Generators of the tasks of the papers: deterministic functions of their random draws."""

from isometry.tasks.adding import adding
from isometry.tasks.copying import copying
from isometry.tasks.one_hot import one_hot
from isometry.tasks.pixels import pixels

__all__ = ["adding", "copying", "one_hot", "pixels"]
