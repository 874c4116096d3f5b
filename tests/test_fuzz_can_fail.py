"""The fuzz makes every mistake of its table, and rejects every broken package by a call that the real one passes."""

import numpy as np
import pytest

from faces import FACES, one_thread
from fuzz import examine, faults
from fuzz.broken import BROKEN
from fuzz.choices import LENGTH, Choices
from support.broken import broken

pytestmark = pytest.mark.slow

MOST = 4000  # examples within which the fault must be detected


def passes(family, face, data):
    try:
        examine.example(family, face, data)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(
    "family,name,fault,functions",
    [pytest.param(*row[1:4], row[4:], id=f"{row[0]}-{row[2]}-{row[1]}") for row in BROKEN],
)
def test_the_fuzz_rejects(family, name, fault, functions):
    real, wrong = FACES[name](), FACES[name](broken(name, fault, *functions))
    rng = np.random.default_rng(0)
    examples = (rng.bytes(LENGTH) for _ in range(MOST))
    with one_thread():
        assert any(not passes(family, wrong, data) and passes(family, real, data) for data in examples), "accepted"


@pytest.mark.parametrize("name", FACES)
def test_every_mistake_is_made(name):
    """Every row of the table fits some call."""
    missing = {id(fault): fault for fault in (*faults.ARRAYS, faults.UNWELCOME) if name in fault.faces}
    face, rng = FACES[name](), np.random.default_rng(0)
    families = [family for family in examine.families(name) if family not in examine.ALWAYS_VALID]
    for family in families * MOST:
        _, spoiled = examine.drawn(family, face, Choices(rng.bytes(LENGTH)), spoiled=True)
        if spoiled and missing.pop(id(spoiled.fault), None) and not missing:
            return
    raise AssertionError(f"never made: {list(missing.values())}")
