"""A copy, a deep copy and an unpickled object are the same operator, or layer, in separate memory."""

import copy
import io
import pickle

import pytest
import torch

import isometry.torch as it
import reference as ref
from layers import FORMS, KINDS, NAMES, B, D, T, draw, formed, states
from registry import gathered
from tolerance import identical

SHALLOW = {"copy": copy.copy}
DEEP = {"deepcopy": copy.deepcopy} | {
    f"pickle {protocol}": lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
    for protocol in (2, pickle.HIGHEST_PROTOCOL)
}


def memory(value):
    """The address of an array or a tensor."""
    return value.data_ptr() if isinstance(value, torch.Tensor) else value.__array_interface__["data"][0]


def frozen(op, name):
    try:
        setattr(op, name, 1)
    except AttributeError:
        return True
    return False


def held(op, name):
    """An array of the operator, `name.k` that of a list; None if it has none."""
    owner, dot, k = name.partition(".")
    found = getattr(op, owner)
    return (found[int(k)] if int(k) < len(found) else None) if dot else found


def duplicated(subject, rng, duplicate, deep=True):
    """The copy of an operator: its class, arguments and results, bit by bit, and as immutable."""
    op = subject.operator()
    twin, x = duplicate(op), subject.given(ref.normal(rng, 2, *subject.batch_shape, op.shape[1], dtype=subject.dtype))
    assert type(twin) is type(op) and repr(twin) == repr(op)
    for name in subject.case.object.arguments:
        mine, own = held(op, name), held(twin, name)
        assert (mine is None) == (own is None), f"{name} appears or is lost"
        if mine is not None:
            assert type(own) is type(mine)
            identical(subject.home(own), subject.home(mine), name)
            assert (memory(own) != memory(mine)) == (deep and own.nbytes > 0), f"memory of {name}"
    for found, expected in ((twin.matrix(), op.matrix()), (twin.apply(x), op.apply(x))):
        identical(subject.home(found), subject.home(expected), "a result")
    for name in (*gathered(subject.case.object.arguments), "shape", "dtype", "anything"):
        assert frozen(twin, name), f"{name} of the twin can be set"


def test_operators(make, seed):
    for duplicate in SHALLOW.values():
        duplicated(make(), seed, duplicate, deep=False)
    for duplicate in DEEP.values():
        duplicated(make(), seed, duplicate)
        duplicated(make(4, (2, 1)), seed, duplicate)


def test_an_operator_that_is_trained_stays_so():
    """The tensors of the copy are leaves too."""
    for op in (it.Householder(torch.nn.Parameter(torch.ones(3, 1))), it.Cayley(torch.ones(3, requires_grad=True))):
        name = "vectors" if isinstance(op, it.Householder) else "upper"
        mine = getattr(op, name)
        for duplicate in DEEP.values():
            twin = duplicate(op)
            own = getattr(twin, name)
            (twin.matrix() ** 3).sum().backward()
            assert own.requires_grad and own.is_leaf and type(own) is type(mine)
            assert own.grad is not None and mine.grad is None


# ---------------------------------------------------------------- layers

SINGLE = torch.float32  # which every backend serves
LAYERS = list(dict.fromkeys((*KINDS, *FORMS)))


def saved(layer):
    """Through a file of torch."""
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def trained(layer):
    """States, gradients and the parameters after a step of training."""
    dtype = next(layer.parameters()).dtype
    x, h0 = draw(T, B, D, dtype=dtype), states(layer, 4, B, dtype=dtype)
    layer.zero_grad()
    out, last = layer(x, h0)
    (out.abs().square().sum() + layer(x)[1].abs().sum()).backward()
    grads = [p.grad for p in layer.parameters() if p.grad is not None]
    torch.optim.SGD(layer.parameters(), lr=0.01).step()
    return [out, last, *grads, *layer.state_dict().values()]


def duplicated_layer(layer, duplicate):
    """The copy has the same representation, state and training, and training it does not affect the layer."""
    twin = duplicate(layer)
    assert type(twin) is type(layer) and repr(twin) == repr(layer)
    assert [k for k, _ in twin.named_parameters()] == [k for k, _ in layer.named_parameters()]
    assert [p.requires_grad for p in twin.parameters()] == [p.requires_grad for p in layer.parameters()]
    before = {k: t.clone() for k, t in layer.state_dict().items()}
    found = trained(twin)
    for k, t in layer.state_dict().items():
        assert torch.equal(t, before[k]), f"{k} has changed with the twin's"
    for a, b in zip(found, trained(layer), strict=True):
        identical(a.detach(), b.detach(), "of the twin")


@pytest.mark.parametrize("duplicate", [*DEEP.values(), saved], ids=[*DEEP, "torch.save"])
@pytest.mark.parametrize("form", LAYERS)
def test_layers(form, duplicate):
    layer = formed(form, 2, bidirectional=True, trainable_h0=True, dtype=SINGLE)
    next(layer.parameters()).requires_grad_(False)
    duplicated_layer(layer, duplicate)


@pytest.mark.parametrize("form", LAYERS)
def test_a_state_dict_is_the_layer(form):
    """Another layer that loads it is the same from then on."""

    def loaded(layer):
        other = formed(form, 2, seed=5, bidirectional=True, dtype=SINGLE)
        other.load_state_dict(pickle.loads(pickle.dumps(layer.state_dict())))
        return other

    duplicated_layer(formed(form, 2, bidirectional=True, dtype=SINGLE), loaded)


def test_no_layer_is_left_out():
    assert {type(formed(form)).__name__ for form in LAYERS} == set(NAMES)
