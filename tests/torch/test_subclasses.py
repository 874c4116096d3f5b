"""Users' subclasses of torch's layers on these kernels: which are taken, methods, copies, the way back."""

import abc
import copy
import functools
import pickle

import pytest
import torch
from torch import nn

import isometry.torch as it
from layers import B, D, N, T, draw


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
