"""TorchRL's LSTMModule and GRUModule on our layers, against its backends "pad" and "scan"."""

import copy

import pytest
import torch

import isometry.torch as it
import other_packages
from agents import weight_normed
from isometry.integrations import torchrl as integration
from isometry.integrations.torchrl import register
from isometry.torch.nn._plain import _FEW
from isometry.torch.nn._streaming import Held

pytestmark = other_packages.MARKS
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
B, T, D, N = 3, 7, 4, 5
KINDS = ("lstm", "gru")
#: Marks of steps at which a trajectory begins: nowhere, first, last, everywhere, anywhere; of other axes.
MARKS = {
    "none": torch.zeros(B, T, dtype=torch.bool),
    "first": (torch.arange(T) == 0).expand(B, T),
    "last": (torch.arange(T) == T - 1).expand(B, T),
    "all": torch.ones(B, T, dtype=torch.bool),
    "anywhere": torch.rand(B, T, generator=torch.Generator().manual_seed(1)) < 0.3,
    "one": torch.rand(T, generator=torch.Generator().manual_seed(1)) < 0.3,
    "axes": torch.rand(2, 2, T, generator=torch.Generator().manual_seed(1)) < 0.3,
}
FORMS = {"one": {}, "two": {"num_layers": 2, "bias": False}, "python": {"num_layers": 2, "python_based": True}}


def states(kind):
    return ["h", "c"][: 1 + (kind == "lstm")]


def module(kind, seed=0, **keywords):
    """A module of TorchRL: x and the states to y and those after it."""
    from torchrl.modules import GRUModule, LSTMModule

    torch.manual_seed(seed)
    own = states(kind)
    keys = {"in_keys": ["x", *own, "is_init"], "out_keys": ["y", *(("next", name) for name in own)]}
    sizes = {} if kind in keywords else {"input_size": D, "hidden_size": N}
    return {"lstm": LSTMModule, "gru": GRUModule}[kind](**sizes, **keys, **keywords)


def batch(kind, marks, layers=1, seed=2, dtype=torch.float32, stored=True):
    """Trajectories with states that are drawn at every step."""
    from tensordict import TensorDict

    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*marks.shape, *shape, generator=generator, dtype=dtype)
    given = {"x": draw(D)} | ({name: draw(layers, N) for name in states(kind)} if stored else {})
    return TensorDict({**given, "is_init": marks.unsqueeze(-1)}, marks.shape)


def computed(each, given, recurrent=True, seed=3):
    """Outputs, and gradients by input, stored states and parameters."""
    from torchrl.modules import set_recurrent_mode

    given = given.clone()
    names = [name for name in ("x", "h", "c") if given.get(name, None) is not None]
    for name in names:
        given[name].requires_grad_()
    with set_recurrent_mode(recurrent):
        found = each(given.copy())
    outputs = [found[key] for key in each.out_keys]
    generator = torch.Generator().manual_seed(seed)
    loss = sum((t * torch.randn(t.shape, generator=generator, dtype=t.dtype)).sum() for t in outputs)
    inputs = {**{name: given[name] for name in names}, **dict(each.named_parameters())}
    slopes = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    zero = lambda slope, name: torch.zeros_like(inputs[name]) if slope is None else slope
    return [t.detach() for t in outputs], {name: zero(g, name) for name, g in zip(inputs, slopes, strict=True)}


def agrees(each, given, recurrent=True, **close):
    """What the registration computes, which is what TorchRL computes."""
    want = computed(each, given, recurrent)
    with register():
        found = computed(each, given, recurrent)
    torch.testing.assert_close(found, want, **(close or CLOSE))
    return found


def served(each, kind, changed):
    """No call of torch's layer passes."""
    changed.setattr(type(getattr(each, kind)), "forward", None)


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("backend", ["pad", "scan"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_trajectories(kind, form, backend, marks, monkeypatch):
    """Outputs, states where trajectories end, and gradients, stored states among them; no layer of torch is called."""
    each = module(kind, recurrent_backend=backend, **FORMS[form])
    for stored in (True, False) if marks in ("one", "axes") else (True,):
        given = batch(kind, MARKS[marks], FORMS[form].get("num_layers", 1), stored=stored)
        want = computed(each, given)
        with register(), monkeypatch.context() as changed:
            served(each, kind, changed)
            changed.setattr(type(each), "_lstm" if kind == "lstm" else "_gru", None)
            found = computed(each, given)
        torch.testing.assert_close(found, want, **CLOSE)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_steps(kind, form, stored, monkeypatch):
    """One at a time, as in a collector, with gradients and without."""
    each, marks = module(kind, **FORMS[form]), torch.tensor([True, False, True])
    given = batch(kind, marks, FORMS[form].get("num_layers", 1), stored=stored)
    want = computed(each, given, False)
    with register(), monkeypatch.context() as changed:
        served(each, kind, changed)
        found = computed(each, given, False)
        with torch.no_grad():
            acted = each(given.clone())
    torch.testing.assert_close(found, want, **CLOSE)
    torch.testing.assert_close([acted[key] for key in each.out_keys], want[0], **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_states_that_are_not_read(kind):
    """Those at steps without a mark may be anything, and have no gradient."""
    each, given = module(kind), batch(kind, MARKS["anywhere"])
    marks = MARKS["anywhere"].clone()
    marks[:, 0] = True
    other = given.clone()
    for name in states(kind):
        other[name][~marks] = float("nan")
    with register():
        want, found = computed(each, given), computed(each, other)
    torch.testing.assert_close(found, want, rtol=0, atol=0)
    assert all((found[1][name][~marks] == 0).all() for name in states(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_recomputation_and_double_precision(kind):
    """``recurrent_recompute``, of both backends that have it."""
    each = module(kind, num_layers=2, recurrent_backend="scan", recurrent_recompute="full").double()
    agrees(each, batch(kind, MARKS["anywhere"], 2, dtype=torch.float64), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers(kind):
    """A share of the units of the first layer; none in evaluation."""
    each = module(kind, num_layers=2, dropout=1.0)
    given = batch(kind, MARKS["anywhere"], 2)
    with register():
        found = computed(each, given)
        want = computed(each, given.clone().update({"x": given["x"] + 1}))
        torch.testing.assert_close(found[0][0], want[0][0], rtol=0, atol=0)
    agrees(each.eval(), given)


OURS = {
    "lstm": lambda: it.nn.LSTM(D, N, 2, batch_first=True),
    "gru": lambda: it.nn.GRU(D, N, 2, batch_first=True, reset="after"),
    "goru": lambda: it.nn.GORU(D, N, 2, batch_first=True),
    "scornn": lambda: it.nn.ScoRNN(D, N, 2, batch_first=True),
}


@pytest.mark.parametrize("name", OURS)
def test_layers_of_this_package(name):
    """As the `lstm=` or `gru=` of a module: an update is what steps gave, with and without the registration."""
    kind = "lstm" if name == "lstm" else "gru"
    torch.manual_seed(0)
    each = module(kind, **{kind: OURS[name]()})
    given = batch(kind, MARKS["anywhere"], 2)
    for key in states(kind):  # a collector stores zeros where a trajectory begins
        given[key][MARKS["anywhere"]] = 0
    found = agrees(each, given)
    with register():
        now = [given[key][:, 0] for key in states(kind)]
        outputs = []
        for t in range(T):
            step = given[:, t].clone().update(dict(zip(states(kind), now, strict=True)))
            with torch.no_grad():
                step = each(step)
            outputs.append(step["y"])
            now = [step["next", key] for key in states(kind)]
    torch.testing.assert_close(torch.stack(outputs, 1), found[0][0], **CLOSE)
    torch.testing.assert_close(now, [t[:, -1] for t in found[0][1:]], **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_torch_load(kind):
    """And back; in each backend our layer is as torch's. "scan" reads weights in torch's shapes, as a GRU's are not."""
    theirs, ours = module(kind, num_layers=2), module(kind, **{kind: OURS[kind]()})
    getattr(ours, kind).load_state_dict(getattr(theirs, kind).state_dict())
    given = batch(kind, MARKS["anywhere"], 2)
    want = computed(theirs, given)[0]
    for backend in ("pad", "scan"):
        ours.recurrent_backend = backend
        if (kind, backend) != ("gru", "scan"):
            torch.testing.assert_close(computed(ours, given)[0], want, **CLOSE)
        with register():
            torch.testing.assert_close(computed(ours, given)[0], want, **CLOSE)


def test_matrices_are_packed_once_while_collecting(monkeypatch):
    packed, prepare = [], Held._prepare
    monkeypatch.setattr(Held, "_prepare", lambda own: packed.append(1) or prepare(own))
    for each in (module("gru"), module("gru", gru=it.nn.GRU(D, N, batch_first=True))):
        packed.clear()
        given = batch("gru", torch.zeros(_FEW + 1, dtype=torch.bool))
        with register(), torch.no_grad():
            before, _, _ = (each(given.clone())["y"] for _ in range(3))
            assert len(packed) == 1
            for p in each.parameters():
                p.mul_(1.5)
            after = each(given.clone())["y"]
            assert len(packed) == 2 and not torch.equal(before, after)
            torch.testing.assert_close(copy.deepcopy(each)(given.clone())["y"], after)
        torch.testing.assert_close(each(given.clone())["y"], after)


def hooked(layer):
    """Its output may be a packed sequence."""
    twice = lambda state: tuple(2 * t for t in state) if isinstance(state, tuple) else 2 * state
    layer.register_forward_hook(lambda *call: (call[2][0], twice(call[2][1])))


@pytest.mark.parametrize("changed", [hooked, weight_normed])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_more_than_its_parameters_is_left_to_torchrl(kind, changed):
    each = module(kind)
    changed(getattr(each, kind))
    agrees(each, batch(kind, MARKS["anywhere"]), rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_and_errors_are_those_of_torchrl(kind):
    given = batch(kind, MARKS["anywhere"], 2)
    agrees(module(kind, bidirectional=True), given, rtol=0, atol=0)
    with register():
        scan = module(kind, num_layers=2, dropout=0.5, recurrent_backend="scan")
        for each, wrong, error, said in (
            (scan, given, NotImplementedError, "does not support dropout"),
            (module(kind), given.exclude("x"), KeyError, "x"),
            (module(kind), given.exclude("is_init"), KeyError, "is_init"),
            (module(kind), given[0, 0], ValueError, "at least one batch dim"),
            *(
                [(module(kind), given.exclude("c"), RuntimeError, "h.*c.* all must be given or none")]
                * (kind == "lstm")
            ),
        ):
            with pytest.raises(error, match=said):
                computed(each, wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_by_name(kind):
    """TorchRL's `dispatch`: tensors instead of a dictionary."""
    each, given = module(kind), batch(kind, MARKS["first"][:, 0])
    names = {name: given[name] for name in ("x", *states(kind), "is_init")}
    want = each(**names)
    with register():
        torch.testing.assert_close(each(**names), want, **CLOSE)


def test_it_is_undone(monkeypatch):
    from torchrl.modules import GRUModule, LSTMModule

    kinds = (LSTMModule, GRUModule)
    before = [vars(kind)["forward"] for kind in kinds]
    with register(), register():
        assert not any(vars(kind)["forward"] is own for kind, own in zip(kinds, before, strict=True))
        saved = copy.deepcopy(module("lstm"))
    assert [vars(kind)["forward"] for kind in kinds] == before
    assert list(saved.state_dict()) == list(module("lstm").state_dict())
    monkeypatch.setattr(GRUModule, "forward", lambda *given: given)
    with pytest.raises(RuntimeError, match=r"torchrl .* is not known: forward of GRUModule takes \(\*given\)"):
        register()
    assert vars(LSTMModule)["forward"] is before[0]
    monkeypatch.setattr(integration, "_RNN", "torchrl_that_is_not_there")
    with pytest.raises(ImportError, match="pip install torchrl"):
        register()
