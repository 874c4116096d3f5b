"""Tests of the GPU backend: skipped without an adapter, unless ISOMETRY_REQUIRE_GPU=1 asks for one."""

import os

import numpy as np
import pytest

import isometry as iso
from gpu_memory import poison


def opened():
    """Why there is no GPU; None if there is one."""
    try:
        iso.gpu.Array(np.zeros(1))
    except RuntimeError as error:
        return str(error)
    return None


@pytest.fixture(autouse=True, scope="session")
def _gpu():
    if (reason := opened()) is not None:
        if os.environ.get("ISOMETRY_REQUIRE_GPU") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def _poisoned(_gpu):
    poison()
