"""What holds for every kind of layer: graphs, gradients per sequence, training, initial values and states."""

import contextlib
import itertools

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils._pytree import tree_leaves

import isometry.torch as it
import tolerance
from layers import (
    COMPLEX,
    FORMS,
    HEADED,
    KINDS,
    MATRIX,
    OF_CELLS,
    B,
    D,
    N,
    T,
    build,
    close,
    draw,
    every_form,
    formed,
    whole,
)
from registry.cells import CASES

each_form = pytest.mark.parametrize("form", [*FORMS, *HEADED])


@pytest.mark.parametrize("form", ["ornn", "scurnn", *FORMS, *HEADED])
@pytest.mark.slow
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


@every_form
def test_what_is_recorded_changes_no_bit(form):
    """Of results; a frozen layer passes the same gradient on to its input."""
    layer, x = formed(form, 2, bidirectional=True), draw(T, B, D).requires_grad_()
    expected = layer(x)
    bar = torch.autograd.grad(expected[0].abs().square().sum(), x)[0]
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert all(map(torch.equal, layer(x), expected))
    found = torch.autograd.grad(layer.requires_grad_(False)(x)[0].abs().square().sum(), x)[0]
    tolerance.close(found, bar, tolerance.sequence_gradient("float64", N, T), "gradient")


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


def returned(layer, batch):
    """What calls and steps return, the states behind the output of a call."""
    x = draw(T, *batch, D)
    cell, step = isinstance(layer, CELLS), layer.step(x[0])
    yield [None, *tree_leaves(step[1] if not cell and len(layer._state) > 1 else step)]
    if not cell:
        yield from (tree_leaves(layer(given)) for given in (x, x[:1]))
        if batch:
            yield tree_leaves(layer(pack_sequence(x.unbind(1)))[1])


CELLS = tuple(type(it.nn.from_torch(kind(1, 1), cells=True)) for kind in (torch.nn.LSTMCell, torch.nn.GRUCell))


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("form", [*KINDS, *FORMS, *HEADED, *CELLS])
def test_states_are_tensors_of_their_own(form, recorded):
    """Each is overwritten and detached in place; nothing else that was returned is."""
    for size, batch, cached in itertools.product((1, 2), ((), (1,), (B,)), (False, True)):
        layer = form(D, N, dtype=torch.float64) if form in CELLS else whole(form, size)
        with torch.set_grad_enabled(recorded), layer.cached() if cached else contextlib.nullcontext():
            for output, *states in returned(layer, batch):
                before = [None if t is None else t.detach().clone() for t in (output, *states)]
                for k, t in enumerate(states, 1):
                    t[..., torch.arange(t.shape[-1]) % 2 > 0] = 0
                    t.detach_()
                    others = [
                        (own, was)
                        for own, was in zip((output, *states[k:]), (before[0], *before[k + 1 :]), strict=True)
                    ]
                    assert all(own is None or torch.equal(own, was) for own, was in others)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("cell", [case for case in CASES if len(case.cell.first) > 1], ids=str)
def test_parts_of_states_are_tensors_of_their_own(cell, recorded):
    """Of functions, whatever there is one of: steps, sequences, units."""
    for steps, batch, n, output in itertools.product((1, 3), (1, 2), (1, 4), ("states", "last")):
        drawn = {k: torch.as_tensor(a) for k, a in cell.draw(np.random.default_rng(0), n, steps, batch).items()}
        lead, given = cell.given({k: t.requires_grad_(recorded) for k, t in drawn.items()}, it)
        first, second = getattr(it, cell.cell.stem)(*lead, **given, output=output)
        before = second.detach().clone()
        first[..., torch.ones(n, dtype=torch.bool)] = 0
        first.detach_()
        assert torch.equal(second.detach_(), before)
