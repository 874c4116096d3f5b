"""Cells inside of `use_backend("gpu")`: the kernels of the GPU compute them, and give the numbers of the CPU."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from gpu_tensors import B, D, N, T, same
from isometry.gpu._coverage import has_cell
from kernel_calls import recorded
from registry.cells import CASES
from support.cells import TorchCell

OPTIONS = {
    "lengths": {"lengths": [2, T, 0], "reverse": True},
    "last": {"output": "last", "lengths": [T, 0, 1]},
    "checkpoint": {"checkpoint": "sqrt"},
}


def function(case, rng, single=True, **options):
    return TorchCell(case).function(case.draw(rng, N, T, B, D, single=single), **options, **case.options())


#: Without blocks, which are the members of an ensemble: the laws compare their numbers.
SINGLE = [case for case in CASES if has_cell(case.cell.stem) and case.variant != "by blocks"]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("cell", SINGLE, ids=str)
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


@pytest.mark.parametrize("n", [2, 3, 31, 33, 64, 65, 130])
def test_a_rotation_to_the_opposite_direction(n, seed):
    """e = -tau at every step, in which a workgroup replaces the state that all of its threads have read."""
    draw = lambda *shape: seed.standard_normal(shape).astype(np.float32)
    embed = draw(n, 2)
    arrays = {"x": draw(5, 3, 2), "w": np.zeros((2 * n, n), np.float32), "u": np.concatenate((draw(n, 2), -embed))}
    arrays |= {"b": np.zeros(2 * n, np.float32), "embed_weight": embed, "embed_bias": None, "h0": draw(3, n)}
    expected, found = (iso.rum(**arrays, backend=backend)[0] for backend in ("cpu", "gpu"))
    assert np.abs(found - expected).max() < 1e-5
