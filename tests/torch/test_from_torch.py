"""Torch's recurrent layers on these kernels and back: what the layers share with torch, and what they refuse."""

import copy

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, draw
from of_torch import each, theirs
from support import modules


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
