"""The cells of recurrent networks, one module each: their arrays, settings and results. No module handles arrays."""

from importlib import import_module

from isometry._cells._declaration import Cell


def public(name: str) -> Cell:
    """The cell of that name with the arrays of its function."""
    return getattr(import_module(f"isometry._cells.{name}"), name.upper())


def declaration(name: str) -> Cell:
    """The cell of that name with the arrays of its kernel, as layers call it: `STACKED` of a module that has it."""
    return getattr(import_module(f"isometry._cells.{name}"), "STACKED", None) or public(name)
