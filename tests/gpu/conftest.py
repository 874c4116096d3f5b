"""Tests of the GPU backend: not run without an adapter, unless ISOMETRY_REQUIRE_GPU=1 asks for one."""

import os
from functools import cache

import numpy as np
import pytest

import isometry as iso
from gpu_memory import poison


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
    own = {item for item in items if item.nodeid.startswith("tests/gpu/")}
    if own and missing() is not None and os.environ.get("ISOMETRY_REQUIRE_GPU") != "1":
        config.hook.pytest_deselected(items=[*own])
        items[:] = [item for item in items if item not in own]


@pytest.fixture(autouse=True)
def _poisoned():
    assert missing() is None, missing()
    poison()
