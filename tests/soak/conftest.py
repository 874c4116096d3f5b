"""The sizes of these tests: small, or those of `benches/reliability.py`, which reads what they count from a file."""

import json
import os
from argparse import Namespace

import pytest

SMALL = {"moments": 3, "minutes": 0.1, "seconds": 2, "files": 100, "seed": 0}


@pytest.fixture
def sizes():
    return Namespace(**SMALL | json.loads(os.environ.get("ISOMETRY_SOAK", "{}")))


@pytest.fixture
def figures():
    """What a test counts: a line of JSON in the file that ISOMETRY_FIGURES names."""
    found = {}
    yield found
    with open(os.environ.get("ISOMETRY_FIGURES", os.devnull), "a") as file:
        file.write(json.dumps(found) + "\n")
