"""The layers, drawn for a test: D features in, N units, T steps of B sequences, in double precision."""

import copy
import functools

import pytest
import torch

import isometry.torch as it
import tolerance

D, N, T, B = 3, 6, 5, 4
LAYERS = {
    "ornn": it.nn.ORNN,
    "unitary-ornn": it.nn.UnitaryORNN,
    "scornn": it.nn.ScoRNN,
    "scurnn": it.nn.ScuRNN,
    "soft-ornn": it.nn.SoftORNN,
    "kru": it.nn.KRU,
    "eurnn": it.nn.EURNN,
    "exprnn": it.nn.ExpRNN,
    "exprnn-complex": functools.partial(it.nn.ExpRNN, complex=True),
    "urnn": it.nn.URNN,
}
# W is orthogonal or unitary for some parameters only
SOFT = ("soft-ornn", "kru")
# W is a parameter, unitary as long as its optimiser trains it
FREE = {"full-capacity-urnn": it.nn.FullCapacityURNN}
# with gates
GATED = {"gru": it.nn.GRU, "goru": it.nn.GORU, "rum": it.nn.RUM}
# whose state is no vector
MATRIX = {"delta-product": functools.partial(it.nn.DeltaProduct, heads=2, householders=2)}
KINDS = {**LAYERS, **FREE, **GATED, **MATRIX}
COMPLEX = tuple(name for name, layer in KINDS.items() if layer(D, N).is_complex)
# The names of all layers; the module of an operator is none.
NAMES = tuple(name for name in it.nn.__all__ if name not in ("OperatorModule", "parameter_groups"))
each_layer = pytest.mark.parametrize("name", LAYERS)
each_kind = pytest.mark.parametrize("name", KINDS)


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def build(name, *args, seed=0, **keywords):
    torch.manual_seed(seed)
    layer = KINDS[name](D, N, *args, **{"dtype": torch.float64, **keywords})
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return layer


def states(layer, *lead, **keywords):
    """States of sequences, or initial ones."""
    return draw(*lead, *layer._state, **keywords)


def stepped(layer, x, state=None):
    """The state after a step, which a layer whose state is no vector returns beside the output."""
    found = layer.step(x, state)
    return found[1] if len(layer._state) > 1 else found


def close(value, reference, what="value"):
    tolerance.close(value.detach(), reference.detach(), tolerance.sequence("float64", N, T), what)


def same_per_sample_gradients(layer):
    """torch.func's gradients of every sequence alone add up to autograd's."""
    x, parameters = draw(T, B, D), {key: p.detach() for key, p in layer.named_parameters()}

    def loss(parameters, x):
        return torch.func.functional_call(layer, parameters, (x,))[0][-1].abs().square().sum()

    every = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1))(parameters, x[:, :, None])
    layer(x)[0][-1].abs().square().sum().backward()
    for key, p in layer.named_parameters():
        tolerance.close(every[key].sum(0), p.grad, tolerance.sequence_gradient("float64", N, T), key)


def trains_as_in_double(layer):
    """20 steps of a layer in single precision: losses fall, and are those of its copy in double precision."""
    losses = []
    for model in (layer, copy.deepcopy(layer).double()):
        optimizer, found = torch.optim.SGD(model.parameters(), lr=0.01), []
        for seed in range(20):
            x = draw(T, B, D, seed=seed).to(model.weight_ih_l0.dtype)
            loss = (model(x)[0][-1].sum(-1) - x.sum((0, 2)).tanh()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(torch.tensor(found))
    assert losses[1][-5:].mean() < losses[1][:5].mean()
    tolerance.close(losses[0], losses[1], tolerance.training("float32", 20), "losses")


def starts_from_its_trained_state(layer):
    """The trained initial state is what serves where none is given, and it has a gradient."""
    x = draw(T, B, D)
    close(layer(x)[0], layer(x, layer.h0_l0.expand(1, B, *layer._state))[0], "the trained one")
    layer(x)[0].sum().backward()
    assert layer.h0_l0.grad.shape == layer._state
    assert layer.h0_l0.grad.any()
