"""The verdict on one example: a valid call gives the reference's result, one with a mistake the documented error."""

import re

import numpy as np

from fuzz import (
    activations,
    cells,
    constructors,
    delta,
    faults,
    hadamard,
    linalg,
    measures,
    operators,
    recurrences,
    sequences,
)
from fuzz.choices import Choices
from fuzz.draw import LARGE


def large(choices, face):
    """Any of these calls at sizes at which threads, blocks and the tails of tiles are used."""
    make = choices.of((operators.methods, recurrences.recurrences, activations.activations))
    call = make(choices, face, LARGE)
    call.threads = choices.between(1, 3)
    return call


# name -> the calls that are drawn
FAMILIES = {
    "operators": operators.methods,
    "recurrences": recurrences.recurrences,
    "activations": activations.activations,
    "constructors": constructors.constructors,
    "measures": measures.measures,
    "sequences": sequences.sequences,
    "linalg": linalg.linalg,
    "cells": cells.cells,
    "delta": delta.delta,
    "hadamard": hadamard.hadamard,
    "extremes": operators.extremes,
    "unchecked": operators.unchecked,
    "large": large,
}
ALWAYS_VALID = ("extremes", "unchecked", "large", "delta")
ALONE = {
    "numpy": ("unchecked", "sequences"),  # the torch face does not check for NaN and has no tasks
}


def families(face):
    """Those of a face."""
    foreign = {family for other, own in ALONE.items() if other != face for family in own}
    return [family for family in FAMILIES if family not in foreign]


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
    expected = f"{' or '.join(kind.__name__ for kind in spoiled.raises)} with a message like {spoiled.says!r}"
    try:
        face.examined(call, spoiled.arguments)
    except Exception as error:
        if type(error) not in spoiled.raises or not re.search(spoiled.says, str(error), re.DOTALL):
            told = f"{type(error).__name__}: {error}, expected {expected}"
            raise AssertionError(f"{call} with {spoiled.title}: {told}") from error
    else:
        raise AssertionError(f"{call} with {spoiled.title}: accepted, expected {expected}")
