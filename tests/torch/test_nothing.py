"""torch.func over nothing: a batch of no example or member gives empty results and gradients of the right shapes."""

import numpy as np
import pytest
import torch
from torch.func import functional_call, grad, jacrev, vmap
from torch.utils._pytree import tree_flatten

import isometry as iso
import isometry.torch as it
from faces import tensor
from laws.test_functions import SMOOTH, function
from layers import KINDS, B, D, T, build, draw
from orthogonal_weights import EVERY


def batches(size, tree):
    """A batch of this size of every tensor."""
    return torch.utils._pytree.tree_map(lambda t: t.detach().expand(size, *t.shape), tree)


def of_nothing(f, *arguments, in_dims=0):
    """Results of a batch of none have the structure, shapes and types of those of a batch of one, but for the batch."""
    dims = (in_dims,) * len(arguments) if in_dims == 0 else in_dims
    given = lambda size: [a if d is None else batches(size, a) for a, d in zip(arguments, dims, strict=True)]
    none, one = (tree_flatten(vmap(f, dims)(*given(size))) for size in (0, 1))
    assert none[1] == one[1]
    for a, b in zip(none[0], one[0], strict=True):
        assert a.shape == (0, *b.shape[1:]) and a.dtype == b.dtype


def every_way(f, parameters, x):
    """Of f(parameters, x): examples, members, both, one inside the other; values and gradients."""
    loss = lambda p, x: f(p, x).abs().square().sum()
    own = grad(loss, argnums=(0, 1))
    real = not any(t.is_complex() for t in tree_flatten((parameters, x))[0])  # as jacrev needs them
    for g in (f, own, *((jacrev(loss),) if real else ())):
        for dims in ((None, 0), (0, None), (0, 0)):
            of_nothing(g, parameters, x, in_dims=dims)
    # members of no example, no member of two examples
    for outer, inner in ((2, 0), (0, 2)):
        found = vmap(vmap(own, (None, 0)), (0, None))(batches(outer, parameters), batches(inner, x))
        assert tree_flatten(found)[0][-1].shape == (outer, inner, *x.shape)
    # a sum over no example has the gradient zero
    for g in tree_flatten(grad(lambda p: vmap(lambda x: loss(p, x))(batches(0, x)).sum())(parameters))[0]:
        assert not g.any()


@pytest.mark.parametrize("name", KINDS)
def test_layers(name):
    layer, x = build(name), draw(T, B, D)
    parameters = {key: p.detach() for key, p in layer.named_parameters()}
    every_way(lambda p, x: functional_call(layer, p, (x,))[0], parameters, x)
    of_nothing(layer, x)
    of_nothing(layer.step, x[0])
    of_nothing(layer, x, draw(1, B, *layer._state))


def test_operators(case, seed):
    n = case.size(4)
    given = {name: tensor(a) for name, a in case.draw(seed, n).items()}
    trained = {key: t for key, t in given.items() if t.is_floating_point() or t.is_complex()}
    made = lambda some: case.build(it, {**given, **some}, n)
    operator = made({})
    x, y = (torch.randn(3, k, dtype=operator.dtype) for k in operator.shape[::-1])
    every_way(lambda some, x: made(some).apply(x), trained, x)
    of_nothing(lambda some: made(some).matrix(), trained)
    of_nothing(grad(lambda some: made(some).matrix().abs().square().sum()), trained)
    of_nothing(lambda some, y: made(some).apply_adjoint(y), trained, y, in_dims=(0, None))


test_operators.select = lambda case: case.dtype in (np.float64, np.complex128)


@pytest.mark.parametrize("kind", [it.adapters.OFT, it.adapters.HRA])
def test_adapters(kind):
    adapter, x = kind(torch.nn.Linear(8, 3), 4), torch.randn(5, 8)
    trained = {key: p.detach() for key, p in adapter.named_parameters() if p.requires_grad}
    every_way(lambda p, x: functional_call(adapter, p, (x,)), trained, x)
    assert adapter(x[:0]).shape == (0, 3)


@EVERY
def test_weights(name):
    for shape in ((6, 6), (9, 4), (4, 9)):
        module = it.parametrizations.orthogonal(torch.nn.Linear(*shape[::-1]), orthogonal_map=name)
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        every_way(lambda s, x: functional_call(module, s, (x,)), state, torch.randn(5, shape[1]))


@pytest.mark.parametrize("name", [*SMOOTH, "recurrence"])
def test_functions(name, seed):
    call, at = function(name, seed) if name in SMOOTH else (over_three_units, [torch.randn(4, 3, dtype=torch.float64)])
    of_nothing(call, *at)
    of_nothing(grad(lambda *at: call(*at).sum()), *at)


def over_three_units(x):
    return it.recurrence(it.Cayley(x.new_zeros(3)), x.view(4, 1, 3), x.new_ones(3, 3))


@pytest.mark.parametrize("package", [iso, it], ids=["numpy", "torch"])
def test_stacks_of_none(package):
    """Of every function of matrices."""
    given = (lambda a: a) if package is iso else torch.from_numpy
    for shape in ((0, 9, 4), (2, 0, 4, 4), (3, 0), (0, 3), (0, 0), (0, 12, 12), (2, 9, 0)):
        a = given(np.zeros(shape))
        assert package.linalg.procrustes(a).shape == package.linalg.geqrf(a)[0].shape == shape
