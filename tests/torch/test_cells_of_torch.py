"""Torch's cells on these kernels: values, gradients, `cached`, state dicts, errors, subclasses, and the way back."""

import contextlib

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, draw
from of_torch import agree

CELLS = {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell}
each = pytest.mark.parametrize("kind", CELLS)


def pair(kind, **keywords):
    torch.manual_seed(4)
    theirs = CELLS[kind](D, N, dtype=torch.float64, **keywords)
    return theirs, it.nn.from_torch(theirs, cells=True)


def state(kind, *shape):
    return (draw(*shape, N, seed=1), draw(*shape, N, seed=2)) if kind == "lstm" else draw(*shape, N, seed=1)


@each
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(), (1,), (B,), (0,)])
def test_values_and_gradients(kind, bias, batch):
    x = draw(*batch, D, seed=3).requires_grad_()
    for hx in (None, state(kind, *batch)):
        agree(pair(kind, bias=bias), x, hx)


@each
def test_many_steps(kind):
    """A decoder's loop, inside `cached` and outside, with and without gradients, with hooks, by `step`."""
    theirs, ours = pair(kind)
    calls = []
    for grad in (True, False):
        for cached in (True, False):
            for hooked in (False, True):
                handle = ours.register_forward_hook(lambda *_: calls.append(0)) if hooked else None
                a = b = state(kind, B)
                with torch.set_grad_enabled(grad), ours.cached() if cached else contextlib.nullcontext():
                    for seed in range(4):
                        x = draw(B, D, seed=seed)
                        a, b = (ours if seed else ours.step)(x, a), theirs(x, b)
                torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
                if handle is not None:
                    handle.remove()
    assert len(calls) == 4 * 4


@each
def test_state_dicts(kind):
    """Of torch's cell and of ours; `test_subclasses` has the way back."""
    theirs, ours = pair(kind)
    other, x = it.nn.from_torch(CELLS[kind](D, N, dtype=torch.float64), cells=True), draw(B, D)
    for cell in (theirs, ours):
        torch.nn.init.zeros_(next(other.parameters()))
        other.load_state_dict(cell.state_dict())
        torch.testing.assert_close(other(x), theirs(x), rtol=1e-12, atol=1e-12)
    if kind == "lstm":
        assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours).startswith(type(theirs).__name__ + f"({D}, {N}")


@each
def test_what_a_cell_refuses(kind):
    _, ours = pair(kind)
    name, other = type(ours).__name__, "gru" if kind == "lstm" else "lstm"
    with pytest.raises(ValueError, match=f"^{name}: .*1D or 2D, got 3D"):
        ours(draw(2, B, D))
    with pytest.raises(TypeError, match="^input must be"):
        ours([1.0] * D)
    with pytest.raises(TypeError, match="^hx must be"):
        ours(draw(B, D), state(other, B))
    with pytest.raises(RuntimeError, match=f"^{name}: Expected hx of shape .{B}, {N}."):
        ours(draw(B, D), state(kind, B + 1))
    with pytest.raises(RuntimeError, match="input_size"):
        ours(draw(B, D + 1))
