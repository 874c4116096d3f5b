"""Tests of torch's CUDA devices: not run without one, unless ISOMETRY_REQUIRE_CUDA=1 asks for one."""

import os

import torch


def pytest_collection_modifyitems(config, items):
    """Without a device these tests are not run."""
    own = {item for item in items if item.nodeid.startswith("tests/cuda/")}
    if own and not torch.cuda.is_available() and os.environ.get("ISOMETRY_REQUIRE_CUDA") != "1":
        config.hook.pytest_deselected(items=[*own])
        items[:] = [item for item in items if item not in own]
