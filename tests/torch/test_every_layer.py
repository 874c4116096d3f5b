"""What holds for every kind of layer: graphs, gradients per sequence, training, initial values and states."""

import copy

import pytest
import torch

import tolerance
from layers import COMPLEX, FORMS, HEADED, KINDS, MATRIX, OF_CELLS, B, D, N, T, build, close, draw, each_kind, formed

each_form = pytest.mark.parametrize("form", [*FORMS, *HEADED])


@pytest.mark.parametrize("form", ["ornn", "scurnn", *FORMS, *HEADED])
def test_compiles_in_one_piece(form):
    """No graph break; a layer of each kind has two layers and directions."""
    torch.compiler.reset()
    layer, x = formed(form, 2, bidirectional=True) if form in KINDS else formed(form), draw(T, B, D)
    close(torch.compile(layer, backend="aot_eager", fullgraph=True)(x)[0], layer(x)[0])


@pytest.mark.parametrize("name", [*COMPLEX, *OF_CELLS, *MATRIX])
def test_per_sample_gradients(name):
    """torch.func's gradients of every sequence alone add up to autograd's."""
    layer = build(name)
    x, parameters = draw(T, B, D), {key: p.detach() for key, p in layer.named_parameters()}

    def loss(parameters, x):
        return torch.func.functional_call(layer, parameters, (x,))[0][-1].abs().square().sum()

    every = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1))(parameters, x[:, :, None])
    layer(x)[0][-1].abs().square().sum().backward()
    for key, p in layer.named_parameters():
        tolerance.close(every[key].sum(0), p.grad, tolerance.sequence_gradient("float64", N, T), key)


@pytest.mark.parametrize("form", [*OF_CELLS, "rum-eta", "delta-product", *HEADED])
def test_trains_as_in_double(form):
    """20 steps of a layer in single precision: losses of the same inputs fall, and are those of its copy in double."""
    layer, losses = formed(form, dtype=torch.float32), []
    for model in (layer, copy.deepcopy(layer).double()):
        optimizer, found = torch.optim.SGD(model.parameters(), lr=0.01), []
        for step in range(20):
            x = draw(T, B, D, seed=step % 4).to(model.weight_ih_l0.dtype)
            loss = (model(x)[0][-1].sum(-1) - x.sum((0, 2)).tanh()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(torch.tensor(found))
    assert losses[1][-4:].mean() < losses[1][:4].mean()
    tolerance.close(losses[0], losses[1], tolerance.training("float32", 20), "losses")


@each_form
def test_a_trained_initial_state_and_none_at_all(form):
    """The trained initial state is what serves where none is given, and it has a gradient; without one it is 0."""
    layer, x = formed(form, trainable_h0=True), draw(T, B, D)
    close(layer(x)[0], layer(x, layer.h0_l0.expand(1, B, *layer._state))[0], "the trained one")
    layer(x)[0].sum().backward()
    assert layer.h0_l0.grad.shape == layer._state
    assert layer.h0_l0.grad.any()
    plain = formed(form, bias=False)
    assert not plain(torch.zeros(T, B, D, dtype=torch.float64))[0].any()


@each_kind
def test_the_seed_decides_the_initial_values(name):
    torch.manual_seed(1)
    layer = KINDS[name](D, N, 2, trainable_h0=True)
    before = {key: p.clone() for key, p in layer.named_parameters()}
    torch.manual_seed(1)
    layer.reset_parameters()
    assert all(torch.equal(p, before[key]) for key, p in layer.named_parameters())
