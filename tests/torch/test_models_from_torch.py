"""Models and layers of torch on these kernels and back: what is replaced, what stays and why."""

import argparse
import collections
import contextlib
import copy
import functools

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, draw
from of_torch import each, theirs
from support import modules


def left(model, **keywords):
    """Converts a model; what stayed, with reasons. Without a report, a warning names the same."""
    again, reasons = copy.deepcopy(model), dict(it.nn.from_torch(model, report=True, **keywords)[1].left)
    with pytest.warns(UserWarning, match="^from_torch left") if reasons else contextlib.nullcontext():
        it.nn.from_torch(again, **keywords)
    assert [type(module) for module in again.modules()] == [type(module) for module in model.modules()]
    return reasons


def test_a_model():
    """Layers in places of their own, one in two places; a layer that cannot be converted stays alone."""
    shared = torch.nn.GRU(N, N)
    model = torch.nn.ModuleDict({"a": torch.nn.RNN(D, N), "b": shared, "d": torch.nn.LSTM(D, N)})
    model["again"] = shared
    found, report = it.nn.from_torch(model, report=True)
    assert found is model and [name for name, _ in report.replaced] == ["a", "b", "d"] and not report.left
    assert type(model["a"]) is it.nn.RNN and type(model["b"]) is it.nn.GRU and model["again"] is model["b"]
    assert type(model["d"]) is it.nn.LSTM and it.nn.from_torch(model) is model
    with pytest.raises(NotImplementedError, match="proj_size"):
        it.nn.from_torch(torch.nn.LSTM(D, N, proj_size=2))
    model = torch.nn.Sequential(torch.nn.RNN(D, N), torch.nn.LSTM(D, N, proj_size=2))
    assert "proj_size" in left(model)["1"]
    assert type(model[0]) is it.nn.RNN and type(model[1]) is torch.nn.LSTM
    with pytest.raises(TypeError, match="module must be"):
        it.nn.from_torch(shared.state_dict())
    with pytest.raises(TypeError, match="cells"):
        it.nn.from_torch(model, cells=1)


class Own(torch.nn.GRU):
    pass


def test_roots_in_which_there_is_nothing():
    for root, why in (
        (Own(D, N), "subclass Own"),
        (torch.nn.Linear(D, N), "a Linear"),
        (torch.nn.RNNCell(D, N), "RNNC"),
        (torch.nn.GRUCell(D, N), "cells=True"),
    ):
        for keywords in ({}, {"report": True}):
            with pytest.raises(TypeError, match=f"^module must be .*{why}"):
                it.nn.from_torch(root, **keywords)
    for model, what in ((torch.nn.Sequential(torch.nn.Linear(D, N)), "no torch.nn.RNN"), ([Own(D, N)], "'0' .*Own")):
        with pytest.warns(UserWarning, match=f"^from_torch replaced nothing in Sequential: .*{what}"):
            it.nn.from_torch(torch.nn.Sequential(*model))
    ours = torch.nn.Sequential(it.nn.ScoRNN(D, N), Own(N, N))
    report = it.nn.from_torch(ours, report=True)[1]
    assert report.replaced == [] and [name for name, _ in report.left] == ["1"] and "left 1" in str(report)


def test_what_else_stays():
    """Cells, quantised and parametrized layers, by name, without what is inside them."""
    quantised = torch.ao.nn.quantized.dynamic.LSTM(D, N)
    model = torch.nn.ModuleDict({"a": torch.nn.RNNCell(D, N), "b": torch.nn.LSTMCell(D, N), "c": quantised})
    model["d"] = torch.nn.utils.parametrizations.weight_norm(theirs("gru"), "weight_hh_l0")
    model["e"], model["f"] = theirs("tanh"), torch.ao.nn.quantizable.LSTM(D, N)
    reasons = dict(it.nn.from_torch(model, report=True)[1].left)
    for name, why in {
        "a": "RNNCell",
        "b": "cells=True",
        "c": "quantised",
        "d": "parametrized",
        "f": "quantised",
    }.items():
        assert why in reasons.pop(name)
    assert not reasons and type(model["e"]) is it.nn.RNN
    model["a"] = torch.nn.GRUCell(D, N)
    it.nn.from_torch(model, cells=True, report=True)
    assert all(type(model[name]).__module__.startswith("isometry.") for name in "abe")


@each
def test_weights_shared_with_what_stays(kind):
    """A layer stays that shares a weight with another module, or with a layer that stays, and so on."""
    model = torch.nn.Sequential(theirs(kind), torch.nn.Linear(D, N), *(theirs(kind) for _ in range(3)))
    model[1].weight = model[4].weight_ih_l0
    model[3].bias_ih_l0, model[2].bias_hh_l0 = model[4].bias_ih_l0, model[3].bias_hh_l0
    reasons = left(model)
    assert set(reasons) == {"2", "3", "4"} and "weight_ih_l0 of '4' is shared with '1.weight'" in reasons["4"]
    assert type(model[0]) is not type(model[2]) is type(theirs(kind))
    ours = torch.nn.Sequential(it.nn.from_torch(theirs(kind)), torch.nn.Linear(D, N))
    ours[1].weight = ours[0].weight_ih_l0
    with pytest.raises(NotImplementedError, match=r"weight_ih_l0 of '0' is shared with '1\.weight'"):
        it.nn.to_torch(ours)


class Holder(torch.nn.Module):
    """Calls its layer by an attribute that is no submodule."""

    def __init__(self, layer, hold):
        super().__init__()
        self.body = layer
        self.__dict__["held"] = hold(layer)


def test_places_that_a_call_does_not_read(kind="gru"):
    """Compiled, distributed, sharded, held by an attribute, as its weights: named, and left."""
    holds = (
        lambda layer: layer,
        lambda layer: [layer],
        lambda layer: {"a": (layer,)},
        lambda layer: collections.deque([layer]),
        lambda layer: argparse.Namespace(own=argparse.Namespace(layer=layer)),
        lambda layer: layer.forward,
        lambda layer: functools.partial(layer, hx=None),
        lambda layer: lambda x: layer(x),
        lambda layer: lambda x, layer=layer: layer(x),
    )
    with modules.Process():
        for path, make in [
            ("1._orig_mod", modules.WRAPPERS["compiled"]),
            ("1.module", modules.WRAPPERS["distributed"]),
            ("1.0", lambda layer: modules.WRAPPERS["sharded"](torch.nn.Sequential(layer))),
            ("1", modules.scripted),
            *(("1.body", lambda layer, hold=hold: Holder(layer, hold)) for hold in holds),
            ("1.body.weight_hh_l0", lambda layer: Holder(layer, lambda layer: [layer.weight_hh_l0])),
        ]:
            model = torch.nn.Sequential(theirs(kind), make(theirs(kind)))
            reasons = it.nn.from_torch(model, report=True)[1].left
            assert len(reasons) == 1 and path.startswith(reasons[0][0]) and reasons[0][1].startswith("is ")
            assert type(model[0]) is it.nn.GRU
            assert it.nn.GRU not in [type(each) for each in model[1].modules()]
    with pytest.warns(UserWarning, match="^from_torch replaced nothing .* '_orig_mod' .is compiled"):
        it.nn.from_torch(modules.WRAPPERS["compiled"](theirs(kind)))
    ours = it.nn.from_torch(theirs(kind))
    model = torch.nn.Sequential(it.nn.from_torch(theirs(kind)), Holder(ours, lambda layer: [layer]))
    with pytest.raises(NotImplementedError, match="^to_torch: '1.body' is also held"):
        it.nn.to_torch(model)
    assert type(model[0]) is it.nn.GRU


@pytest.mark.parametrize("wrap", ["around", "in place"])
def test_a_compiled_model_reads_its_layers(wrap, kind="lstm"):
    """It calls the new ones, before and after its first call."""
    model, x = torch.nn.Sequential(theirs(kind)), draw(T, B, D)
    expected, outer = model(x)[0], model
    if wrap == "around":
        outer = modules.WRAPPERS["compiled"](model)
    else:
        model.compile(backend="eager")
    for first in (False, True):
        if first:
            outer(x)
        assert it.nn.from_torch(outer) is outer
        torch.testing.assert_close(outer(x)[0], expected, rtol=0, atol=1e-12)
        outer(x)[0].sum().backward()
        assert all(p.grad is not None for p in outer.parameters())
        model[0] = theirs(kind)


@each
def test_whole_models_go_back(kind):
    """In place, with shared layers and weights; an error names path and class, and nothing is replaced."""
    layer = theirs(kind, 2)
    model = torch.nn.ModuleDict({"a": layer, "b": torch.nn.Sequential(theirs(kind), torch.nn.Linear(N, N)), "c": layer})
    model["b"][0].weight_hh_l0 = layer.weight_hh_l1
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kinds = [type(each) for each in model.modules()]
    assert it.nn.to_torch(it.nn.from_torch(model)) is model
    assert [type(each) for each in model.modules()] == kinds and model["a"] is model["c"]
    assert model["b"][0].weight_hh_l0 is model["a"].weight_hh_l1
    torch.testing.assert_close(dict(model.state_dict()), before, rtol=0, atol=0)
    assert it.nn.to_torch(model) is model
    it.nn.from_torch(model)
    for other in (it.nn.ScoRNN(D, N), it.nn.GRU(D, N), it.nn.LSTM(D, N, trainable_h0=True)):
        mixed = torch.nn.ModuleDict({"a": model, "deep": torch.nn.Sequential(other)})
        with pytest.raises(TypeError, match=f"^'deep.0' {type(other).__name__} cannot become one of torch"):
            it.nn.to_torch(mixed)
        assert type(model["a"]).__module__.startswith("isometry.")
    with pytest.warns(UserWarning, match="to_torch replaced nothing in Sequential"):
        it.nn.to_torch(torch.nn.Sequential(torch.nn.Linear(D, N)))
    with pytest.raises(TypeError, match="^module must be"):
        it.nn.to_torch([model])


@each
def test_what_stays(kind):
    """Copies on the same device, in the order of the axes; no random numbers are drawn."""
    layer, before = theirs(kind, batch_first=True), torch.get_rng_state()
    ours = it.nn.from_torch(layer)
    assert torch.equal(torch.get_rng_state(), before) and ours.batch_first
    ours.weight_ih_l0.data.zero_()
    assert layer.weight_ih_l0.any()
    assert it.nn.from_torch(layer.to("meta")).weight_hh_l0.device.type == "meta"


@pytest.mark.parametrize("bias", [True, False])
def test_a_gru_with_the_reset_before(bias):
    """It has no second bias, and does not take torch's weights."""
    with pytest.raises(RuntimeError, match="make the layer with reset='after'"):
        it.nn.GRU(D, N, bias=bias).load_state_dict(torch.nn.GRU(D, N, bias=bias).state_dict())


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (lambda: it.nn.GRU(D, N), "reset"),
        (lambda: it.nn.RNN(D, N, nonlinearity="modrelu"), "modrelu"),
        (lambda: it.nn.RNN(D, N, transition=it.Cayley.random), "transition"),
        (lambda: it.nn.RNN(D, N, trainable_h0=True), "trainable_h0"),
        (lambda: it.nn.GRU(D, N, reset="after", last_only=True), "last_only"),
        (lambda: it.nn.ScoRNN(D, N), "no RNN"),
        (lambda: torch.nn.GRU(D, N), "no RNN"),
    ],
)
def test_what_torch_has_not(layer, why):
    with pytest.raises(TypeError, match=f"^layer .*{why}"):
        it.nn.to_torch(layer())


def test_every_hook_of_torch_is_drawn():
    """Whatever torch keeps hooks in is filled by one of the ways that the tests below try."""
    kept = {name for name, value in vars(torch.nn.Module()).items() if "hooks" in name and not value}
    for register in modules.HOOKS.values():
        register(module := torch.nn.Linear(1, 1))
        kept -= {name for name in kept if getattr(module, name)}
    assert not kept
    kept = {name for name in dir(torch.Tensor) if name.startswith("_") and name.endswith("_hooks")}
    for register in modules.TENSOR_HOOKS.values():
        register(p := torch.nn.Parameter(torch.zeros(2)))
        kept -= {name for name in kept if getattr(p, name)}
    assert not kept


ADDED = {
    **{name: lambda layer, _, add=add: add(layer) for name, add in modules.HOOKS.items()},
    **modules.COMPUTED,
    **modules.ADDITIONS,
}


@each
def test_what_was_added_is_refused(kind):
    """In both directions. In a model, such a layer stays on the way here; on the way back nothing is replaced."""
    for name, add in ADDED.items():
        layer, ours = theirs(kind), it.nn.from_torch(theirs(kind))
        add(layer, "weight_hh_l0")
        model = torch.nn.Sequential(theirs(kind), torch.nn.Sequential(layer))
        with pytest.raises(NotImplementedError, match="^from_torch keeps no hooks .* remove .* of module first"):
            it.nn.from_torch(layer)
        why = it.nn.from_torch(model, report=True)[1].left
        assert why[0][0] == "1.0" and "keeps no hooks" in why[0][1] and "of '1.0' first" in why[0][1]
        assert type(model[0]) is not type(layer) is type(model[1][0]), name
        add(ours, "weight_hh_l0")
        model = torch.nn.Sequential(it.nn.from_torch(theirs(kind)), torch.nn.Sequential(ours))
        for given, where in ((ours, "layer"), (model, "'1.0'")):
            with pytest.raises(NotImplementedError, match=f"^to_torch keeps no hooks .* of {where} first"):
                it.nn.to_torch(given)
        assert type(model[0]) is type(ours), name


@each
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("copied", modules.COPIES)
def test_what_a_layer_has_been_through(kind, copied, bias):
    """The new layer computes the same, both ways, from contiguous parameters with the same flags."""
    layer = modules.COPIES[copied](theirs(kind, 2, bidirectional=True, bias=bias))
    ours, x = it.nn.from_torch(layer), draw(T, B, D)
    back = it.nn.to_torch(modules.COPIES[copied](copy.deepcopy(ours)))
    for new in (ours, back):
        rounded = copied == "half and back"  # once more, on the way back
        torch.testing.assert_close(new(x), layer(x), rtol=0, atol=1e-12 if not rounded else 1e-2)
        assert all(p.is_contiguous() for p in new.parameters()) and new.training is layer.training
        assert [p.requires_grad for p in new.parameters()] == [p.requires_grad for p in layer.parameters()]


@each
def test_attributes_of_a_layer_and_of_its_parameters(kind):
    """Are carried over, unless they mean another thing there."""
    layer = theirs(kind)
    layer.tag, layer.weight_ih_l0.tag = ["a"], "b"
    layer.weight_hh_l0.requires_grad_(False)
    there = it.nn.from_torch(torch.nn.Sequential(layer))[0]
    for new in (it.nn.from_torch(layer), it.nn.to_torch(it.nn.from_torch(layer)), there):
        assert new.tag is layer.tag and new.weight_ih_l0.tag == "b" and not new.weight_hh_l0.requires_grad
    for name, value in (
        ("step", 3),
        ("checkpoint", "sqrt"),
        ("recurrent_parameters", None),
        ("flatten_parameters", dict),
    ):
        changed = theirs(kind)
        setattr(changed, name, value)
        with pytest.raises(NotImplementedError, match=f"the attribute '{name}' of module"):
            it.nn.from_torch(changed)
    ours = it.nn.from_torch(layer)
    ours.mode = "GRU"
    with pytest.raises(NotImplementedError, match="the attribute 'mode' of layer"):
        it.nn.to_torch(ours)


@each
def test_shared_parameters(kind):
    """Layers share what they shared, of one layer too; a parameter of another module is named."""
    model = torch.nn.Sequential(theirs(kind, 2), theirs(kind, 2), torch.nn.Linear(D, N))
    model[1].weight_ih_l0 = model[0].weight_ih_l0
    model[0].weight_hh_l1 = model[0].weight_hh_l0
    count = sum(p.numel() for p in model.parameters())
    expected = [layer(draw(T, B, D))[0] for layer in model[:2]]
    it.nn.from_torch(model)
    assert model[0].weight_ih_l0 is model[1].weight_ih_l0 and model[0].weight_hh_l0 is model[0].weight_hh_l1
    assert sum(p.numel() for p in model.parameters()) == count
    found = [layer(draw(T, B, D))[0] for layer in model[:2]]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    back = it.nn.to_torch(model[0])
    assert back.weight_hh_l0 is back.weight_hh_l1
    assert it.nn.to_torch(model)[1].weight_ih_l0 is model[0].weight_ih_l0


WEIGHTS = [torch.int8, torch.uint8, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2]


@each
def test_weights_that_no_layer_stores(kind):
    """A closed list of dtypes, by name; dense; one dtype, and the sizes of the layer."""

    def changed(change):
        layer = theirs(kind)
        layer.weight_hh_l0 = torch.nn.Parameter(change(layer.weight_hh_l0.detach()), requires_grad=False)
        return layer

    wrong = [(lambda w, dtype=dtype: w.to(dtype), TypeError, str(dtype).removeprefix("torch.")) for dtype in WEIGHTS]
    wrong += [
        (lambda w: w.to_sparse(), TypeError, "torch.sparse_coo"),
        (lambda w: w.float().to_mkldnn(), TypeError, "torch._mkldnn"),
        (lambda w: w.float(), TypeError, "float64, as weight_ih_l0 is, not float32"),
        (lambda w: w[:, 1:].clone(), ValueError, "have shape"),
    ]
    for change, error, named in wrong:
        model = torch.nn.Sequential(theirs(kind), changed(change))
        with pytest.raises(error, match=f"^weight_hh_l0 of module must .*{named}"):
            it.nn.from_torch(model[1])
        why = it.nn.from_torch(model, report=True)[1].left[0][1]
        assert why.startswith("weight_hh_l0 of '1' must ") and named in why
        assert type(model[0]) is not type(model[1]) is type(theirs(kind))
