"""Tests in this folder make many calls on tiny tensors, which a second thread only delays; torch draws the same numbers
in every run."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread_and_seed():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)
