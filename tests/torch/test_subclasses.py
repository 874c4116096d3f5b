"""Users' subclasses of layers, torch's and ours: which are taken, methods, types, the way back."""

import abc
import copy
import functools
import pickle
import warnings

import pytest
import torch
from torch import nn

import isometry.torch as it
from derivatives import compiled
from layers import COMPLEX, KINDS, LAYERS, B, D, N, T, build, draw, each_kind, states
from registry.cells.goru import Shear


class Plain(nn.GRU):
    """Has nothing of its own."""


class Base(abc.ABC, nn.RNNBase):
    """As in pytorch-forecasting: what both layers share, over torch's common base."""

    @abc.abstractmethod
    def blank(self, x): ...

    def forward(self, x, hx=None, lengths=None):
        if lengths is None:
            return super().forward(x, hx=hx)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, state = super().forward(packed, hx=self.blank(x) if hx is None else hx)
        return nn.utils.rnn.pad_packed_sequence(output)[0], state


class Flexible(Base, nn.LSTM):
    def __init__(self, units, *, tag):
        super().__init__(D, units)
        self.tag = tag

    def blank(self, x):
        return (x.new_zeros(self.num_layers, x.shape[1], self.hidden_size),) * 2

    @property
    def width(self):
        return self.hidden_size

    @classmethod
    def made(cls):
        return cls.__name__

    @staticmethod
    def twice(x):
        return 2 * x


class Further(Flexible):
    def forward(self, x, hx=None, lengths=None):
        output, state = super().forward(x, hx, lengths)
        return self.twice(output), state


class Residual(nn.RNN):
    def forward(self, x, hx=None):
        output, state = super().forward(x, hx)
        return output.cumsum(0), state


class Stepped(nn.LSTMCell):
    def forward(self, x, hx=None):
        return super().forward(x, hx)


TAKEN = {
    "plain": lambda: Plain(D, N, 2),
    "residual": lambda: Residual(D, N, bidirectional=True),
    "flexible": lambda: Flexible(N, tag="a"),
    "further": lambda: Further(N, tag="b"),
    "cell": lambda: Stepped(D, N),
    "cell of torch": lambda: nn.GRUCell(D, N),
}


def converted(name):
    torch.manual_seed(6)
    theirs = TAKEN[name]().double()
    return theirs, it.nn.from_torch(theirs, subclasses=True, cells=True)


@pytest.mark.parametrize("name", TAKEN)
def test_values_copies_and_the_way_back(name):
    theirs, ours = converted(name)
    x = draw(B, D) if "cell" in name else draw(T, B, D)
    calls = [((x,), {})]
    if name in ("flexible", "further"):
        calls += [((x,), {"lengths": torch.tensor([2, 5, 1, 3])})]
    for new in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(new) is type(ours) and type(new).__name__ == type(theirs).__name__
        for arguments, keywords in calls:
            torch.testing.assert_close(new(*arguments, **keywords), theirs(*arguments, **keywords), rtol=0, atol=1e-12)
        back = it.nn.to_torch(new)
        assert type(back) is type(theirs)
        torch.testing.assert_close(back.state_dict(), theirs.state_dict(), rtol=0, atol=0)
        torch.testing.assert_close(back(x), theirs(x), rtol=0, atol=0)
        new.zero_grad()
        new(x)[0].sum().backward()
        assert all(p.grad is not None for p in new.parameters())


def test_methods_of_a_subclass_stay():
    ours = it.nn.from_torch(torch.nn.Sequential(Further(N, tag=["c"])), subclasses=True)[0]
    assert isinstance(ours, it.nn.LSTM) and ours.width == N and ours.made() == "Further" and ours.twice(2) == 4
    assert ours.tag == ["c"] and ours.blank(draw(T, B, D))[0].shape == (1, B, N)
    model = torch.nn.Sequential(Further(N, tag=1), Plain(D, N))
    assert len(it.nn.from_torch(model, subclasses=True, report=True)[1].replaced) == 2
    again = copy.deepcopy(model)
    assert type(it.nn.to_torch(again)[0]) is Further and type(model[0]) is not Further


class Own(nn.GRU):
    def forward(self, x, hx=None):
        return torch.relu(x), hx


class Explicit(nn.LSTM):
    def forward(self, x, hx=None):
        return nn.LSTM.forward(self, x, hx)


class Arguments(nn.LSTM):
    def forward(self, x, hx=None):
        return super(Arguments, self).forward(x, hx)  # noqa: UP008


class Weights(nn.GRU):
    def norm(self):
        return self.weight_hh_l0.norm()


class Words(nn.GRU):
    def norm(self):
        return sum(getattr(self, f"weight_hh_l{k}").norm() for k in range(self.num_layers))


class Private(nn.LSTM):
    def first(self):
        return self._flat_weights[0]


class Checks(nn.LSTM):
    def check_forward_args(self, input, hidden, batch_sizes):
        pass


class Clash(nn.RNN):
    def step(self, x):
        return x


def decorated(f):
    @functools.wraps(f)
    def inner(self, *args):
        return f(self, *args)

    return inner


class Decorated(nn.RNN):
    @decorated
    def extra_repr(self):
        return super().extra_repr()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Own, "Own has a forward of its own"),
        (Explicit, "forward of its own"),
        (Arguments, "forward of Arguments uses Arguments"),
        (Weights, "uses weight_hh_l0"),
        (Words, "uses weight_hh_l"),
        (Private, "uses _flat_weights"),
        (Checks, "check_forward_args of its own"),
        (Clash, "step of Clash means another thing"),
        (Decorated, "extra_repr of Decorated is decorated"),
    ],
)
def test_what_does_more_than_torch_stays(kind, why):
    model = torch.nn.Sequential(kind(D, N), torch.nn.RNN(D, N))
    _, report = it.nn.from_torch(model, subclasses=True, report=True)
    assert type(model[0]) is kind and type(model[1]) is it.nn.RNN
    with pytest.raises(TypeError, match=why):
        it.nn.from_torch(model[0], subclasses=True)
    assert [name for name, _ in report.left] == ["0"]


def test_only_on_request():
    for subclasses in (False, True):
        model = torch.nn.Sequential(Plain(D, N), torch.nn.RNN(D, N))
        left = it.nn.from_torch(model, subclasses=subclasses, report=True)[1].left
        assert bool(left) is not subclasses and (subclasses or "subclasses=True" in left[0][1])


@pytest.mark.parametrize(
    "make",
    [
        it.Cayley.random,
        lambda n: it.Householder.random(n, 2, dtype=torch.float64),
        lambda n: it.Cayley.random(n).H,
        lambda n: it.Circulant.random(n, dtype=torch.complex128),
    ],
    ids=["cayley", "householder", "adjoint", "complex"],
)
def test_what_the_operator_trains_is_trained(make):
    """In every layer and direction; W is that of the operator."""
    layer = it.nn.RNN(D, N, 2, bidirectional=True, transition=make, dtype=torch.float64)
    names = [name for name, _ in layer.named_parameters() if name.startswith("transition")]
    assert len(names) == len(list(layer.recurrent_parameters())) == 4
    layer(draw(T, B, D))[0].abs().square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in layer.parameters())
    w = layer.recurrent_matrix(1, reverse=True)
    assert torch.allclose(w.mH @ w, torch.eye(N, dtype=w.dtype), atol=1e-12)


def test_an_operator_of_ones_own_is_held():
    layer = it.nn.RNN(D, N, transition=lambda n: Shear(torch.full((n - 1,), 0.5)))
    assert not list(layer.recurrent_parameters())
    assert torch.equal(layer.recurrent_matrix(), torch.eye(N) + torch.eye(N).roll(1, 1).triu(1) / 2)
    assert layer(torch.randn(T, B, D))[0].shape == (T, B, N)


class Drawn(torch.nn.Module):
    """Makes operators from a parameter of its own."""

    def __init__(self, size):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(0.3))
        self.upper = torch.nn.Parameter(torch.ones(size * (size - 1) // 2))

    def forward(self, size):
        return it.Cayley(self.scale * self.upper if size == N else self.upper)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_module_as_a_transition(heads):
    """It is called as a function is: its parameters are not the layer's, those of its operators are."""
    module = Drawn(N // heads)
    layer, twin = (it.nn.RNN(D, N, 2, heads=heads, transition=make) for make in (module, lambda n: module(n)))
    assert layer.transition is module and repr(layer) == repr(twin)
    twin.load_state_dict(layer.state_dict())
    for other in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert [name for name, _ in other.named_parameters()] == [name for name, _ in twin.named_parameters()]
        x = torch.randn(T, B, D)
        assert torch.equal(other(x)[0], twin(x)[0])
        other.reset_parameters()
    before = module.scale.detach().clone()
    torch.optim.SGD(layer.parameters(), 0.1).step(lambda: layer(x)[0].sum().backward())
    assert torch.equal(module.scale, before) and module.scale.grad is None


REAL = [name for name in KINDS if name not in COMPLEX]
EVERY = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


@pytest.mark.parametrize("name", [*LAYERS, "full-capacity-urnn"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64], ids=str)
def test_weights_of_another_type(name, dtype):
    """One message, of calls and of the matrix; complex layers have no half precision."""
    if not dtype.is_complex and name not in COMPLEX:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch: complex modules are new
        layer = build(name).to(dtype)
    words = "stores complex numbers as pairs" if dtype.is_complex else "float32 or float64, not .*half precision has no"
    for call in (lambda: layer(draw(T, B, D).to(dtype)), layer.recurrent_matrix):
        with pytest.raises(TypeError, match=words):
            call()


def test_advice_for_an_input_of_another_type():
    """What is advised works: a layer's own weights never become complex or integers."""
    x = draw(T, B, D)
    real, complex_ = build("scornn"), build("unitary-ornn")
    with pytest.raises(ValueError, match=r"real features: torch.cat\(\[input.real, input.imag\], -1\)$"):
        real(x.to(torch.complex128))
    with pytest.raises(ValueError, match=r"Convert input: input.to\(torch.float64\)$"):
        real(x.long())
    for layer, given in ((real, torch.float32), (complex_, torch.float32)):
        with pytest.raises(
            ValueError, match=r"input.to\(torch.float64\), or convert model: model.to\(torch.float32\)$"
        ):
            layer(x.to(given))
    words = r"input.to\(torch.complex128\), or convert model: model.to\(torch.float32\)$"
    with pytest.raises(ValueError, match=words):
        complex_(x.to(torch.complex64))
    complex_.to(torch.float32)(x.to(torch.complex64))


@EVERY
@pytest.mark.parametrize("name", REAL)
def test_half_precision_is_single_precision_rounded_once(name, dtype):
    """Results and gradients of two layers in two directions are those of the widened layer, rounded; so is W."""
    layer = build(name, 2, bidirectional=True, trainable_h0=True, dtype=torch.float32).to(dtype)
    wide, x = copy.deepcopy(layer).float(), draw(T, B, D).to(dtype)
    found, expected = layer(x), wide(x.float())
    for result, full in zip(found, expected, strict=True):
        assert torch.equal(result, full.to(dtype))
    ct = torch.randn_like(expected[0]).to(dtype)
    found[0].backward(ct)
    expected[0].backward(ct.float())
    for (key, p), q in zip(layer.named_parameters(), wide.parameters(), strict=True):
        assert p.grad.dtype == dtype, key
        assert torch.equal(p.grad, q.grad.to(dtype)), key
    if hasattr(layer, "recurrent_matrix"):
        assert torch.equal(layer.recurrent_matrix(1, True), wide.recurrent_matrix(1, True).to(dtype))


@EVERY
def test_half_precision_from_the_constructor(dtype):
    layer, x = it.nn.ORNN(D, N, dtype=dtype), draw(T, B, D).to(dtype)
    h0 = draw(1, B, N).to(dtype)
    assert layer(x, h0)[1].dtype == dtype
    other = torch.float16 if dtype is torch.bfloat16 else torch.bfloat16
    with pytest.raises(TypeError, match="hx must have the precision of the weights"):
        layer(x, h0.to(other))
    with pytest.raises(ValueError, match="does not match weight dtype"):
        layer(x.float())


def test_autocast_over_half_precision_weights():
    """Under autocast the result is in single precision."""
    layer, x = build("scornn", dtype=torch.float32).to(torch.bfloat16), draw(T, B, D).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x)[0]
    assert torch.equal(out, copy.deepcopy(layer).float()(x.float())[0])


def test_half_precision_compiles():
    torch.compiler.reset()
    layer, x = build("goru", dtype=torch.float32).to(torch.bfloat16), draw(T, B, D).bfloat16()
    torch.testing.assert_close(compiled(layer)(x)[0], layer(x)[0])


@each_kind
def test_autocast_computes_in_single_precision(name):
    """Half-precision inputs and states, as other modules return them under autocast, are widened first."""
    layer = build(name, 2, dtype=torch.float32)
    x, h0 = draw(T, B, D, dtype=torch.float32), states(layer, 2, B, dtype=torch.float32)
    half, half_h0 = x.bfloat16(), h0.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        out, last = layer(half, half_h0)
    expected, expected_last = layer(half.float(), half_h0.float())
    assert torch.equal(out, expected)
    assert torch.equal(last, expected_last)
