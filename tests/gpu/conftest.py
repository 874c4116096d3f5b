"""Tests of the GPU backend: not run without an adapter, unless ISOMETRY_REQUIRE_GPU=1 asks for one."""

from functools import cache

import numpy as np
import pytest

import isometry as iso
from kernel_calls import recorded
from selection import only_where_present


@cache
def missing():
    """Why there is no GPU; None if there is one."""
    try:
        iso.gpu.Array(np.zeros(1))
    except (NotImplementedError, RuntimeError) as error:
        return str(error)
    return None


def pytest_collection_modifyitems(config, items):
    """Without an adapter these tests are not run."""
    only_where_present(config, items, "tests/gpu/", missing, "ISOMETRY_REQUIRE_GPU")


@pytest.fixture(autouse=True)
def _present():
    assert missing() is None, missing()


@pytest.fixture
def calls(monkeypatch):
    return recorded(monkeypatch)
