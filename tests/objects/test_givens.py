"""Products of plane rotations: identities, pairs of their own in a stack."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from tolerance import TIGHT, close, eps

REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
BOTH = pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])


@BOTH
def test_every_matrix_of_a_stack_has_pairs_of_its_own(package, seed):
    give = np.asarray if package is iso else torch.from_numpy
    angles = seed.uniform(-np.pi, np.pi, 4)
    pairs = np.array([[[0, 1], [2, 0], [1, 2], [0, 1]], [[2, 1], [1, 0], [0, 2], [2, 1]]])
    op = package.Givens(give(angles), give(pairs), n=3)
    assert op.shape == (3, 3)
    assert op.batch_shape == (2,)
    for k in range(2):
        close(np.asarray(op.matrix()[k]), ref.givens(angles, pairs[k], 3), TIGHT)
        close(np.asarray(op[k].matrix()), ref.givens(angles, pairs[k], 3), TIGHT)
    if package is iso:
        w_bar = ref.normal(seed, 2, 3, 3)
        expected = sum(ref.givens_vjp(w_bar[k], angles, pairs[k], 3)["angles"] for k in range(2))
        close(op.matrix_vjp(w_bar)["angles"], expected, TIGHT)


@REAL
def test_random_ones_are_orthogonal_however_large_their_angles(dtype, seed):
    op = iso.Givens.random(24, 500, dtype=dtype, rng=seed)
    far = iso.Givens((op.angles * 1e4).astype(dtype), op.pairs, n=24)
    for one in (op, far):
        assert iso.orthogonality_error(one.matrix()) < 100
        assert np.abs(np.linalg.det(one.matrix()) - 1) < 2000 * eps(dtype)
