"""The pairs of a mesh, and meshes that are given without a number of layers."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from reference.mesh import mesh_pairs

SHAPES = [
    *(
        (n, {"layers": layers, "first": first})
        for n in (1, 2, 5, 6)
        for layers in (1, 2, 7)
        for first in ("left", "right")
    ),
    *((n, {"layout": "fft"}) for n in (2, 8)),
]


@pytest.mark.parametrize(("n", "keywords"), SHAPES, ids=str)
def test_pairs_are_those_of_the_reference(n, keywords):
    expected = [pair for layer in mesh_pairs(n, **keywords) for pair in layer]
    theta = np.zeros((2, len(expected)))
    for found in (iso.Mesh(theta, n=n, **keywords).pairs, it.Mesh(torch.from_numpy(theta), n=n, **keywords).pairs):
        assert found.shape == (len(expected), 2) and [tuple(pair) for pair in found.tolist()] == expected


def test_each_pair_is_turned_by_its_angle(seed):
    """A whole mesh as a product of blocks at its pairs."""
    for n in (1, 2, 4, 5):
        theta = seed.standard_normal((3, n * (n - 1) // 2))
        for first in ("left", "right"):
            op = iso.Mesh(theta, n=n, first=first)
            other = it.Mesh(torch.from_numpy(theta), n=n, first=first)
            assert op.layers == other.layers == n
            w = np.eye(n) + np.zeros((3, 1, 1))
            for k, (i, j) in enumerate(op.pairs):
                block = np.eye(n) + np.zeros((3, 1, 1))
                s, c = np.sin(theta[:, k]), np.cos(theta[:, k])
                block[:, i, i], block[:, i, j], block[:, j, i], block[:, j, j] = s, c, c, -s
                w = w @ block
            assert np.allclose(op.matrix(), w, atol=1e-13) and np.allclose(other.matrix().numpy(), w, atol=1e-13)


def test_other_numbers_of_angles_need_layers():
    for make in (lambda a: iso.Mesh(a, n=4), lambda a: it.Mesh(torch.from_numpy(a), n=4)):
        for count in (5, 7, 0):
            with pytest.raises(ValueError, match="^layers must be given"):
                make(np.zeros(count))
        with pytest.raises(ValueError, match="^layers must be given"):
            make(np.array(0.0))
    with pytest.raises(ValueError, match="^layers must be given"):
        iso.Mesh.random(4)
