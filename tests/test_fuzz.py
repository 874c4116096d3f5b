"""Random calls: a valid one gives the reference's result, one with a single mistake raises the documented error.

A panic or a crash is not an error; the watchdog prints where a hang is. Hypothesis reports the bytes of the simplest
failing example; `examine.example(family, FACES[package](), data)` repeats it.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faces import FACES, one_thread
from fuzz import examine
from fuzz.choices import LENGTH

# family -> calls per face; the short form examines a tenth, the long one five times as many, more than 140,000 in all
EXAMPLES = {"operators": 8000, "cells": 4000, "extremes": 2000, "unchecked": 1500, "large": 120}
SHORT, LONG = 0.1, 5
CASES = [(family, name) for name in FACES for family in EXAMPLES if family in examine.families(name)]
every_family = pytest.mark.parametrize("family,package", CASES)


def explore(family, package, examples, **options):
    face = FACES[package]()

    @settings(max_examples=examples, **options)
    @given(st.binary(min_size=LENGTH, max_size=LENGTH))
    def example(data):
        examine.example(family, face, data)

    with one_thread():
        example()


@every_family
@pytest.mark.timeout(240, method="thread")
def test_fuzz(family, package):
    """The same examples in every run."""
    explore(family, package, round(SHORT * EXAMPLES[family]), derandomize=True)


@every_family
@pytest.mark.long
@pytest.mark.timeout(1800, method="thread")
def test_fuzz_long(family, package):
    """Different examples in every run."""
    explore(family, package, LONG * EXAMPLES[family])
