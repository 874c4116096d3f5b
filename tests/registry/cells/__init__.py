"""Every cell once: how to draw its arguments, its variants, its definition in NumPy. The laws run on all variants."""

from importlib import import_module

import pytest

from isometry import _core
from registry.cells.entry import CellCase

CELLS = {stem: getattr(import_module(f"registry.cells.{stem}"), stem.upper()) for stem in _core.CELLS}
CASES = [CellCase(cell, variant) for cell in CELLS.values() for variant in cell.variants]

each_cell = pytest.mark.parametrize("cell", CASES, ids=str)
each_plain_cell = pytest.mark.parametrize("cell", [case for case in CASES if case.plain], ids=str)
