"""The cells of recurrent networks, one module each: their arrays, settings and results. No module handles arrays."""

from importlib import import_module

from isometry._cells._declaration import Cell


def declaration(name: str) -> Cell:
    """The cell of that name as layers call it: `STACKED` where a module has one, else its name in capitals."""
    module = import_module(f"isometry._cells.{name}")
    found: Cell = getattr(module, "STACKED", None) or getattr(module, name.upper())
    return found
