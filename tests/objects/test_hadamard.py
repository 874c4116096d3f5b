"""Hadamard matrices: their entries, orders that do not exist, random signs; and the transform without an operator."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
from isometry._objects.hadamard import block, paley
from reference.hadamard import entries, root
from tolerance import identical

FACES = pytest.mark.parametrize("api", [iso, it], ids=["numpy", "torch"])


def own(api, a):
    return torch.from_numpy(a) if api is it else a


@FACES
def test_the_transform_has_entries_of_size_one(api):
    for n in (1, 2, 4, 12, 20, 28, 36, 48, 52, 64, 76, 100, 160, 244):
        h = np.asarray(api.hadamard_transform(own(api, np.eye(n)))).T
        identical(h, entries(n))
        identical(h @ h.T, n * np.eye(n))


def test_the_blocks_are_those_of_both_constructions():
    orders = [p for p in range(4, 1001, 4) if block(p) == p and p & (p - 1)]
    assert orders[:11] == [12, 20, 28, 36, 44, 52, 60, 68, 76, 84, 100]
    missing = [n for n in range(4, 1001, 4) if not block(n)]
    assert (len(missing), missing[:3], missing[-3:]) == (55, [92, 116, 156], [980, 988, 996])  # as docs/math says
    for p in [p for p in orders if p < 150 or {root(p - 1), root(p // 2 - 1)} & {3, 5, 7, 11}]:
        identical(np.array(paley(p), float), entries(p))


@FACES
@pytest.mark.parametrize("n", [3, 6, 22, 50, 92])
def test_orders_that_do_not_exist_are_refused_with_their_neighbours(api, n):
    below, above = {3: (2, 4), 6: (4, 8), 22: (20, 24), 50: (48, 52), 92: (88, 96)}[n]
    message = rf"an order of Hadamard matrices.*; {n} is none, the nearest orders are {below} and {above}$"
    with pytest.raises(ValueError, match="^x must.*" + message):
        api.hadamard_transform(own(api, np.ones((2, n))))
    with pytest.raises(ValueError, match="^signs must.*" + message):
        api.Hadamard(own(api, np.ones((2, n))))
    with pytest.raises(ValueError, match="^signs must.*" + message):
        api.Hadamard.random(n)


@FACES
def test_random_signs(api):
    signs = np.asarray(api.Hadamard.random(24, rounds=3).signs)
    assert signs.shape == (3, 24) and set(np.unique(signs)) == {-1.0, 1.0}


@FACES
def test_a_given_array_receives_the_result(api):
    x, out = own(api, np.arange(24.0).reshape(2, 12)), own(api, np.zeros((2, 12)))
    assert api.hadamard_transform(x, 2.0, out=out) is out
    identical(np.asarray(out), np.asarray(api.hadamard_transform(x, 2.0)))
    for wrong, error, message in (
        (own(api, np.zeros((12, 2))), ValueError, "^out must have shape"),
        (own(api, np.zeros((2, 12), np.float32)), TypeError, "^out must have the dtype of the result, float64"),
        (own(api, np.zeros((12, 2))).T, ValueError, "^out must be contiguous"),
        (x, ValueError, "^out must not share memory with x"),
        ([0.0], TypeError, "^out must be a "),
    ):
        with pytest.raises(error, match=message):
            api.hadamard_transform(x, out=wrong)
    none, room = own(api, np.zeros((0, 8))), own(api, np.zeros((0, 8)))
    assert api.hadamard_transform(none, out=room) is room


@FACES
def test_a_given_array_shares_no_memory_with_x(api):
    """Ranges of addresses decide: views of one array that do not meet are fine, two objects on one memory are not."""
    memory = np.arange(24.0)
    x, beside = own(api, memory[:8]), own(api, memory[8:16])
    expected = np.asarray(api.hadamard_transform(x)).copy()
    identical(np.asarray(api.hadamard_transform(x, out=beside)), expected)
    for first in (0, 4, 7):
        with pytest.raises(ValueError, match="^out must not share memory with x"):
            api.hadamard_transform(x, out=own(api, memory[first : first + 8]))
    np.testing.assert_array_equal(memory[:8], np.arange(8.0))


def test_no_gradient_is_recorded_into_a_given_tensor():
    x = torch.ones(2, 4, requires_grad=True)
    with pytest.raises(ValueError, match="^out must be None"):
        it.hadamard_transform(x, out=torch.empty(2, 4))
    with torch.no_grad():
        it.hadamard_transform(x, out=torch.empty(2, 4))
    with torch.inference_mode():
        it.hadamard_transform(x, out=torch.empty(2, 4))


def test_a_given_tensor_that_autograd_has_saved():
    out, weight = torch.zeros(2, 4), torch.ones(2, 4, requires_grad=True)
    loss = (weight * out).sum()
    it.hadamard_transform(torch.ones(2, 4), out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_scales_that_are_not_finite():
    for scale in (np.nan, np.inf):
        with pytest.raises(ValueError, match="^scale must be finite"):
            iso.hadamard_transform(np.ones(4), scale)
        assert not np.isfinite(iso.hadamard_transform(np.ones(4), scale, check_finite=False)).any()


def test_numpy_takes_lists_and_integers():
    identical(iso.hadamard_transform([1, 2]), np.array([3.0, -1.0]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    x = torch.randn(5, 4096, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()
    y = it.hadamard_transform(x, 4096**-0.5)
    y.backward(torch.ones_like(y))
    assert y.dtype == dtype
    assert x.grad is not None
    assert x.grad.dtype == dtype
    assert torch.equal(y, it.hadamard_transform(x.detach().float(), 4096**-0.5).to(dtype))
    with pytest.raises(TypeError, match="^x must be"):
        it.hadamard_transform(torch.ones(4, dtype=torch.int64))
