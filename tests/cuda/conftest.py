"""Tests of torch's CUDA devices: not run without one, unless ISOMETRY_REQUIRE_CUDA=1 asks for one."""

import torch

from selection import only_where_present


def pytest_collection_modifyitems(config, items):
    """Without a device these tests are not run."""
    only_where_present(config, items, "tests/cuda/", lambda: not torch.cuda.is_available(), "ISOMETRY_REQUIRE_CUDA")
