"""`it.lstm`: half precision and refusals; the laws over all cells say the rest."""

import pytest
import torch

import isometry.torch as it


def leaves():
    generator = torch.Generator().manual_seed(1)
    shapes = ((4, 3, 2), (4, 3, 3), (4, 3, 2), (4, 3), (3, 3), (3,), (3,), (3, 3))
    return [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]


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
