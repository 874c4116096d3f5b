"""The memory of a rotational unit in the NumPy face."""

import numpy as np
import torch

import isometry as iso
import isometry.torch as it
from faces import tensor
from registry.cells import CELLS, CellCase
from tolerance import close, sequence_gradient


def test_the_memory_of_a_rum_has_a_cotangent(seed):
    """With lam 1 states and cotangents are pairs; the states alone are enough. The gradients are the torch face's."""
    arrays = CellCase(CELLS["rum"], "rotations").draw(seed, steps=7, batch=3)
    found = iso.rum(**arrays, lam=1)
    ct = np.cos(np.arange(found[0].size)).reshape(found[0].shape), np.ones_like(found[1])
    pull = lambda states, ct: iso.rum_vjp(**arrays, states=states, ct=ct, lam=1)
    leaves = {name: tensor(a).requires_grad_() for name, a in arrays.items()}
    results = it.rum(**leaves, lam=1)
    for cts, grads in (
        (ct, (pull(found, ct), pull(found[0], ct))),
        ((ct[0], 0 * ct[1]), (pull(found[0], ct[0]),)),
    ):
        expected = torch.autograd.grad(results, list(leaves.values()), [tensor(c) for c in cts], retain_graph=True)
        for own in grads:
            for name, g in zip(leaves, expected, strict=True):
                close(own[name], g, sequence_gradient(np.float64, 4, 7) * 25, name)
