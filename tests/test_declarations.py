"""Each object is declared once in Python and once in the core, and both lists say the same."""

import importlib

import pytest

import isometry as iso
from isometry import _core
from isometry._objects._declaration import Declaration


def declaration(stem: str) -> Declaration:
    """The declaration of an object."""
    found: Declaration = getattr(importlib.import_module(f"isometry._objects.{stem}"), stem.upper())
    return found


@pytest.mark.parametrize("stem", _core.OBJECTS)
def test_the_arguments_are_those_of_the_core(stem: str) -> None:
    own = declaration(stem)
    rows = tuple((a.name, a.axes, a.real, a.trained, a.group, a.list, a.integer) for a in own.arguments)
    assert rows == _core.OBJECTS[stem]
    assert own.stem == stem
    assert hasattr(iso, own.name)


@pytest.mark.parametrize("stem", _core.OBJECTS)
def test_a_shape_that_does_not_fit_is_refused_by_name(stem: str) -> None:
    own = declaration(stem)
    first, *rest = own.arguments
    with pytest.raises(ValueError, match=f"^{first.name} must have"):
        own.check((), *(None for _ in rest))
