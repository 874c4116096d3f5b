"""The verdict on one example: a valid call gives the reference's result, one with a mistake the documented error."""

import re

import numpy as np

from fuzz import cells, faults, operators
from fuzz.choices import Choices

# name -> the calls that are drawn
FAMILIES = {
    "operators": operators.methods,
    "cells": cells.cells,
    "extremes": operators.extremes,
    "unchecked": operators.unchecked,
    "large": operators.large,
}
ALWAYS_VALID = ("extremes", "unchecked", "large")


def families(face):
    """Those of a face; that of torch does not check for NaN."""
    return [family for family in FAMILIES if face == "numpy" or family != "unchecked"]


def drawn(family, face, choices, spoiled):
    """A call and, if requested, its corrupted form, if there is one."""
    with np.errstate(all="ignore"):
        call = FAMILIES[family](choices, face)
        return call, faults.inject(call, face, choices) if spoiled else None


def example(family, face, data):
    """Draw a call from the bytes and examine it, or its corrupted form, on the package of the face."""
    choices = Choices(data)
    call, spoiled = drawn(family, face, choices, family not in ALWAYS_VALID and choices.once_in(2))
    if spoiled:
        refused(face, call, spoiled)
    else:
        served(face, call)


def served(face, call):
    """The result has the expected parts, each correct."""
    with np.errstate(all="ignore"):
        expected = call.expected()
    try:
        found = face.examined(call)
        assert set(found) == set(expected), f"gives {sorted(found)}, expected {sorted(expected)}"
        for part, wanted in expected.items():
            wanted.check(found[part], part)
    except AssertionError as error:
        raise AssertionError(f"{call}: {error}") from error
    except Exception as error:
        if not (isinstance(error, ValueError) and call.may_refuse and re.search(call.may_refuse, str(error))):
            raise AssertionError(f"{call}: refused with {type(error).__name__}: {error}") from error


def refused(face, call, spoiled):
    """The error has exactly the documented type and its message names the faulty argument."""
    expected = f"{spoiled.raises.__name__} with a message like {spoiled.says!r}"
    try:
        face.examined(call, spoiled.arguments)
    except Exception as error:
        if type(error) is not spoiled.raises or not re.search(spoiled.says, str(error), re.DOTALL):
            told = f"{type(error).__name__}: {error}, expected {expected}"
            raise AssertionError(f"{call} with {spoiled.title}: {told}") from error
    else:
        raise AssertionError(f"{call} with {spoiled.title}: accepted, expected {expected}")
