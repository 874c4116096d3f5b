"""`it.lstm`: h and c of every step in the modes of torch."""

import pytest
import torch

import isometry.torch as it


def call(x, w, u, b, h0, c0, h, c, **keywords):
    """The LSTM with all that it takes, from the arguments that have a gradient."""
    marks = torch.tensor([[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0]], dtype=torch.bool)
    return it.lstm(x, w, u, b, h0=h0, c0=c0, starts=marks, start_state=(h, c), lengths=[4, 2, 0], **keywords)


def leaves():
    generator = torch.Generator().manual_seed(1)
    shapes = ((4, 3, 2), (4, 3, 3), (4, 3, 2), (4, 3), (3, 3), (3,), (3,), (3, 3))
    return [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("keywords", [{}, {"reverse": True}, {"output": "last"}, {"checkpoint": "sqrt"}])
def test_gradients(keywords):
    """Of h and of c, in every argument."""
    assert torch.autograd.gradcheck(lambda *given: call(*given, **keywords), leaves())


def test_modes():
    """A graph, `torch.func` and forward mode give the states of an eager call."""
    given = leaves()
    wanted = torch.cat(call(*given)).detach()
    found = torch.compile(call, fullgraph=True)(*given)
    torch.testing.assert_close(torch.cat(found).detach(), wanted)
    x, w, *rest = [t.detach() for t in given]
    many = torch.func.vmap(lambda w: torch.cat(call(x, w, *rest)))(torch.stack((w, 2 * w)))
    torch.testing.assert_close(many[0], wanted)
    torch.testing.assert_close(many[1], torch.cat(call(x, 2 * w, *rest)))
    value, slope = torch.func.jvp(lambda w: torch.cat(call(x, w, *rest)), (w,), (w,))
    torch.testing.assert_close(value, wanted)
    step = (torch.cat(call(x, w * (1 + 1e-6), *rest)) - torch.cat(call(x, w * (1 - 1e-6), *rest))) / 2e-6
    torch.testing.assert_close(slope, step, rtol=1e-6, atol=1e-8)


def test_half_precision():
    x, w, u, *_ = [t.detach().float() for t in leaves()]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h, c = it.lstm(x.bfloat16(), w, u)
    wanted = it.lstm(x.bfloat16().float(), w, u)
    torch.testing.assert_close((h, c), wanted)


@pytest.mark.parametrize("name", ["x", "w", "u", "b", "h0", "c0", "start_state"])
def test_messages_name_the_argument(name):
    x, w, u, b, h0, c0, *state = [t.detach() for t in leaves()]
    given = {"x": x, "w": w, "u": u, "b": b, "h0": h0, "c0": c0}
    given |= {"starts": torch.ones(4, 3, dtype=torch.bool), "start_state": tuple(state)}
    cut = (lambda t: t[..., 0]) if name == "x" else (lambda t: t[..., :-1])
    wrong = (state[0], cut(state[1])) if name == "start_state" else cut(given[name])
    with pytest.raises(ValueError, match=rf"^{name} must have shape"):
        it.lstm(**given | {name: wrong})
    with pytest.raises(TypeError, match=name):
        it.lstm(**given | {name: 1 if name != "start_state" else state[0]})
