"""Matrices with bounded singular values: the bounds, and the margin."""

import pickle

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from isometry.torch import formulas
from registry import DTYPES, real_of
from tolerance import TIGHT, close, eps

DTYPE = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


def drawn(rng, n, dtype, margin=0.5):
    u, v = (ref.haar(rng, n, dtype).astype(dtype) for _ in range(2))
    return iso.BoundedSvd(u, 2 * ref.normal(rng, n, dtype=real_of(dtype)), v, margin=margin)


@DTYPE
def test_margin_one_keeps_small_singular_values(dtype):
    """sigma = 2 sigmoid(p), relatively accurate; also by the formula, and the reference in double precision."""
    p = np.array([-30.0, -17.5, -3.0, 0.0, 3.0], real_of(dtype))
    u = np.eye(5, dtype=dtype)
    expected = 2 * np.exp(p.astype(float)) / (1 + np.exp(p.astype(float)))
    for sigma in (
        np.diag(iso.BoundedSvd(u, p, u, margin=1.0).matrix()),
        iso.BoundedSvd(u, p, u, margin=1.0).apply(np.ones(5, dtype)),
        formulas.bounded_svd.matrix(
            *map(torch.from_numpy, (u, p, u)), torch.tensor(1.0, dtype=torch.from_numpy(p).dtype)
        )
        .diagonal()
        .numpy(),
        np.diag(ref.bounded_svd(u, p, u, 1.0)),
    ):
        assert np.allclose(sigma, expected, rtol=4 * eps(real_of(dtype)), atol=0)


def test_logits_at_the_ends_saturate():
    p = np.array([-800.0, -40.0, 0.0, 40.0, 800.0])
    op = iso.BoundedSvd(np.eye(5), p, np.eye(5), margin=0.5)
    close(np.diag(op.matrix()), [0.5, 0.5, 1, 1.5, 1.5], TIGHT)
    grads = op.matrix_vjp(np.eye(5))["logits"]
    close(grads[2], 0.125 * 2, TIGHT)
    assert (grads[[0, 4]] == 0).all()
    assert np.allclose(grads[[1, 3]], 0.5 * 2 * np.exp(-40.0), rtol=1e-12)


def test_the_margin_is_a_number(seed):
    op = drawn(seed, 4, np.float32, 0.3)
    assert op.margin == 0.3
    assert pickle.loads(pickle.dumps(op)).margin == 0.3
    close(op.astype(np.float64).matrix(), ref.bounded_svd(op.u, op.logits, op.v, 0.3), TIGHT)
    assert iso.BoundedSvd(op.u, op.logits, op.v, margin=1).dtype == np.float32
    own = it.BoundedSvd.random(4, margin=0.25, dtype=torch.complex64)
    assert own.margin == 0.25
    assert it.BoundedSvd(own.u, own.logits, own.v, margin=own.margin).dtype == torch.complex64
