"""Cells inside of `use_backend("gpu")`: the kernels of the GPU compute them, and give the numbers of the CPU."""

import numpy as np
import pytest
import torch

import isometry.torch as it
from gpu_tensors import B, D, N, T, same
from kernel_calls import recorded
from registry.cells import CASES, each_cell
from support.cells import TorchCell

OPTIONS = {
    "lengths": {"lengths": [2, T, 0], "reverse": True},
    "last": {"output": "last", "lengths": [T, 0, 1]},
    "checkpoint": {"checkpoint": "sqrt"},
}


def function(case, rng, single=True, **options):
    return TorchCell(case).function(case.draw(rng, N, T, B, D, single=single), **options, **case.options())


@pytest.mark.parametrize("option", OPTIONS)
@each_cell
def test_cells_are_those_of_the_cpu(cell, option, seed, monkeypatch):
    """Values, gradients, and where they were computed; what else there is the laws say on this backend."""
    if cell.memory and option == "checkpoint":
        return
    calls = recorded(monkeypatch)
    same(*function(cell, seed, **OPTIONS[option]))
    stems = (cell.cell.stem, "gru") if cell.cell.stem == "goru" else (cell.cell.stem,)  # by W it is a GRU
    taken = [c.backend for c in calls if c.kernel.removesuffix("_vjp") in stems]
    assert taken == ["gpu", "gpu", "cpu", "cpu"]


@pytest.mark.parametrize("cell", [c for c in CASES if c.cell.activations], ids=str)
def test_cells_take_single_precision_and_no_starts(cell, seed):
    starts = {"starts": np.ones((T, B), bool)}
    for refused in ({"single": False}, starts):
        if cell.memory and refused is starts:  # whose marks are computed by the formula
            continue
        f, at = function(cell, seed, **refused)
        with (
            it.use_backend("gpu"),
            pytest.raises((TypeError, NotImplementedError), match="starts|float32 and complex64"),
        ):
            f(*at)
        f, at = function(cell, seed, **refused, backend="cpu")
        with it.use_backend("gpu"), torch.no_grad():
            assert f(*at).isfinite().all()
