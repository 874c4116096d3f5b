"""States: every entry is the memory of its module, every way to load gives the module that was saved, and
`load_state_dict(strict=False)` of a part reports what it has not, and leaves it."""

import functools

import pytest
import torch
from torch.nn.utils import prune

import isometry.torch as it
from layers import FORMS, HEADED, KINDS, B, D, N, T, build, draw
from modules import LOADS


def converted(units, seed):
    torch.manual_seed(seed)
    return it.nn.from_torch(torch.nn.GRU(D, units, 2, bidirectional=True))


def orthogonal(name, based, width, seed):
    torch.manual_seed(seed)
    return it.parametrizations.orthogonal(torch.nn.Linear(4, width), orthogonal_map=name, use_trivialization=based)


#: Those of ours for torch's weight_ih, weight_hh, bias_ih and bias_hh.
NAMES = ("weight_ih", "weight_hh", "bias", "hidden_bias")
#: Name -> a module of random entries by `seed`.
MODULES = {name: functools.partial(build, name, 2, bidirectional=True) for name in KINDS}
MODULES |= {
    form: functools.partial(build, kind, **keywords) for form, (kind, keywords) in (FORMS | HEADED).items() if keywords
}
MODULES |= {f"GRU of torch, {units} units": functools.partial(converted, units) for units in (1, N)}
MODULES |= {
    f"orthogonal, {name}, {based}, {width}": functools.partial(orthogonal, name, based, width)
    for name in ("householder", "cayley", "matrix_exp")
    for based in (False, True)
    for width in (4, 6)
}
each_module = pytest.mark.parametrize("name", MODULES)


def read(module):
    return (
        module(draw(T, B, D, dtype=module.weight_ih_l0.dtype))[0] if hasattr(module, "weight_ih_l0") else module.weight
    )


@each_module
def test_entries_are_the_memory_of_the_module(name):
    """Also after an optimiser has moved what has no gradient, with the module read or not."""
    module = MODULES[name](seed=0)
    own = dict(module.named_parameters()) | dict(module.named_buffers())
    for change in (lambda p: p, lambda p: 0.2 * p, lambda p: -p + 0.1 * p):
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(change(p))
        before = read(module).detach().clone()
        for key, t in module.state_dict().items():
            assert t.data_ptr() == own[key].data_ptr() and t.untyped_storage().nbytes() == t.nbytes, key
        assert torch.equal(read(module), before)


@each_module
@pytest.mark.parametrize("way", LOADS)
def test_every_way_to_load(name, way):
    """Into a module that was read before."""
    module, other = MODULES[name](seed=0), MODULES[name](seed=1)
    read(module).detach()  # torch exchanges no parameters of a graph
    LOADS[way](module, other.state_dict())
    assert torch.equal(read(module), read(other))


def values(module):
    return {key: t.clone() for key, t in module.state_dict().items()}


def same(found, expected):
    assert found.keys() == expected.keys()
    for key, t in found.items():
        assert torch.equal(t, expected[key]), key


@each_module
@pytest.mark.parametrize("assign", [False, True], ids=["copied", "assigned"])
def test_one_entry_at_a_time(name, assign):
    module = MODULES[name](seed=0)
    expected = values(module)
    result = module.load_state_dict({}, strict=False, assign=assign)
    assert set(result.missing_keys) == set(expected) and not result.unexpected_keys
    same(values(module), expected)
    other = {key: t.detach() for key, t in MODULES[name](seed=1).state_dict().items()}
    for key, t in other.items():
        result = module.load_state_dict({key: t}, strict=False, assign=assign)
        assert set(result.missing_keys) == set(expected) - {key} and not result.unexpected_keys
        expected[key] = t
        same(values(module), expected)


@each_module
def test_what_a_failed_load_reports(name):
    """Every missing entry, and what was not loaded stays."""
    module = MODULES[name](seed=0)
    state, expected = module.state_dict(), values(module)
    missing = {next(iter(state)), next(reversed(state))}
    for key in missing:
        del state[key]
    with pytest.raises(RuntimeError, match="Missing key") as raised:
        module.load_state_dict(state)
    assert all(f'"{key}"' in str(raised.value) for key in missing)
    same(values(module), expected)


def two(**keywords):
    return it.nn.GRU(D, N, 2, reset="after", **keywords)


def older(layer):
    """The state without second biases, as layers had it once."""
    return {key: t for key, t in layer.state_dict().items() if "hidden" not in key}


ZEROS = {key: torch.zeros(3, N) for key in ("hidden_bias_l0", "hidden_bias_l1")}


def test_second_biases_of_an_older_state_are_zero_where_the_first_are():
    """On the device of the state, for a layer that has none yet."""
    state, layer = older(two()), two(device="meta")
    layer.load_state_dict(state, assign=True)
    same(values(layer), state | ZEROS)
    assert layer(torch.randn(5, 2, D))[0].isfinite().all()
    part, layer = {key: t for key, t in state.items() if key.endswith("l1")}, two()
    before = values(layer)
    layer.load_state_dict(part, strict=False)
    same(values(layer), before | part | {"hidden_bias_l1": ZEROS["hidden_bias_l1"]})


@pytest.mark.parametrize("change", [it.parametrizations.orthogonal, prune.identity], ids=["orthogonal", "pruned"])
def test_an_older_state_of_a_changed_weight(change):
    layer, other = two(), two()
    for each in (layer, other):
        change(each, "weight_hh_l0")
    layer.load_state_dict(older(other))
    same(values(layer), older(other) | ZEROS)


def test_entries_of_torch_one_by_one():
    """Torch's names and shapes are recognised in every entry of every recurrence, among others in ours."""
    theirs = torch.nn.GRU(D, N, 2, bidirectional=True)
    state, whole = theirs.state_dict(), values(it.nn.from_torch(theirs))
    ours = dict(zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), NAMES, strict=True))
    layer = two(bidirectional=True)
    expected = values(layer)
    for key, t in state.items():
        name, _, suffix = key.partition("_l")
        result = layer.load_state_dict({key: t}, strict=False)
        assert not result.unexpected_keys
        expected[f"{ours[name]}_l{suffix}"] = whole[f"{ours[name]}_l{suffix}"]
        same(values(layer), expected)
    mixed = {key: t for key, t in state.items() if "_l0" in key} | {key: t for key, t in whole.items() if "_l1" in key}
    layer = two(bidirectional=True)
    layer.load_state_dict(mixed)
    same(values(layer), whole)
