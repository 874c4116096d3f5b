"""Training in single precision, on the backend under test, follows the same layer in double precision on the CPU."""

import copy

import torch

import isometry.torch as it
import tolerance
from layers import SOFT, B, D, N, T, build, draw, each_layer

UPDATES = 30


def losses(layer, head):
    """Descent on the states' last, step by step; at a small rate, so that errors add up and do not grow."""
    optimizer, found = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.01), []
    for seed in range(UPDATES):
        x = draw(T, B, D, seed=seed).to(head.weight.dtype)
        last = layer(x)[1][0]
        features = torch.cat([last.real, last.imag], -1) if last.is_complex() else last
        loss = (head(features) - x.sum((0, 2))[:, None].tanh()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return torch.tensor(found)


def together(layer, twin, soft=False):
    """All losses of a layer in single and of its copy in double precision; training changes W and keeps it
    unitary."""
    torch.manual_seed(0)
    heads = [torch.nn.Linear(2 * N if layer.is_complex else N, 1)]
    heads.append(copy.deepcopy(heads[0]).double())
    before = layer.recurrent_matrix().detach()
    found = losses(layer, heads[0])
    with it.use_backend("cpu"):
        expected = losses(twin, heads[1])
    tolerance.close(found, expected, tolerance.training("float32", UPDATES), "losses")
    after = layer.recurrent_matrix().detach()
    assert (after - before).abs().max() > 1e-3, "training moves W"
    assert soft or it.orthogonality_error(after) < tolerance.UNITARITY


def pair(name):
    """A layer in single precision, and its copy in double precision."""
    layer = build(name, dtype=torch.float32)
    return layer, copy.deepcopy(layer).double()


@each_layer
def test_training(name):
    together(*pair(name), soft=name in SOFT)
