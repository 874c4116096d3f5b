"""Marks within sequences: every layer and function equals separate calls of the pieces, in every mode of torch."""

import itertools

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

import isometry.torch as it
from layers import HEADED, KINDS, OF_CELLS, B, D, N, draw, formed, initial

T = 9


def marks():
    """Marks of T steps and B columns: none in the first column, one at step 0, one at the last step, several."""
    found = torch.zeros(T, B, dtype=torch.bool)
    found[0, 1] = found[T - 1, 2] = True
    found[[2, 3, 6], 3] = True
    return found


def pieces(column):
    """The steps (first, last) of the pieces of a column of marks."""
    cuts = [0, *(t for t in range(1, T) if column[t]), T]
    return list(itertools.pairwise(cuts))


def apart(layer, x, hx, starts, state):
    """The outputs and last states of the pieces, each in a call of its own, of layers of two directions.

    The one with the first step begins with hx forward, that with the last step backward; all others with the state.
    """
    before = lambda t: state[t] if state.dim() > hx.dim() else state
    turns = lambda forward, backward: torch.stack((forward[::2], backward[1::2]), 1).flatten(0, 1)
    outputs, lasts = [], []
    for b in range(B):
        own, ends = [], []
        for first, end in pieces(starts[:, b]):
            forward = hx if first == 0 and not starts[0, b] else before(first)
            begin = turns(forward, hx if end == T else before(end))
            y, last = layer(x[first:end, b : b + 1], begin[:, b : b + 1])
            own.append(y)
            ends.append(last)
        outputs.append(torch.cat(own))
        lasts.append(turns(ends[-1], ends[0]))
    return torch.cat(outputs, 1), torch.cat(lasts, 1)


@pytest.mark.parametrize("form", [*KINDS, *HEADED])
@pytest.mark.parametrize("before", ["zero", "trained h0", "one state", "a state for each"])
def test_pieces_are_separate_calls(form, before):
    """Values, last states and gradients, of the states given and of those trained too; of two layers and directions."""
    layer = formed(form, 2, bidirectional=True, trainable_h0=before == "trained h0")
    x, starts = draw(T, B, D).requires_grad_(), marks()
    dtype = torch.complex128 if layer.is_complex else torch.float64
    hx = draw(4, B, *layer._state, dtype=dtype).requires_grad_()
    inputs, state = [x, hx, *layer.parameters()], None
    if before in ("one state", "a state for each"):
        steps = (T,) if before == "a state for each" else ()
        state = draw(*steps, 4, B, *layer._state, dtype=dtype, seed=4).requires_grad_()
        inputs.append(state)
    begin, results = initial(layer, B) if state is None else state, []
    for y, last in (layer(x, hx, starts=starts, start_state=state), apart(layer, x, hx, starts, begin)):
        loss = (y * draw(*y.shape, seed=3)).real.sum() + last.abs().square().sum()
        results.append([y, last, *torch.autograd.grad(loss, inputs, allow_unused=True)])
    for found, expected in zip(*results, strict=True):
        if expected is not None:
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["scornn", "scurnn", "rnn", *OF_CELLS, "delta-product"])
def test_shapes_of_input(name):
    """batch_first, no batch, last_only, a checkpoint, an empty batch."""
    layer = KINDS[name](D, N, dtype=torch.float64)
    x, starts = draw(T, B, D), marks()
    state = draw(T, 1, B, *layer._state, dtype=torch.complex128 if layer.is_complex else torch.float64)
    y, last = layer(x, starts=starts, start_state=state)
    layer.batch_first = True
    other, end = layer(x.transpose(0, 1), starts=starts.T, start_state=state)
    assert torch.equal(other.transpose(0, 1), y) and torch.equal(end, last)
    empty, _ = layer(x[:, :0].transpose(0, 1), starts=starts.T[:0], start_state=state[:, :, :0])
    assert empty.shape[:2] == (0, T)
    layer.batch_first = False
    torch.testing.assert_close(layer(x[:, 3], starts=starts[:, 3], start_state=state[:, :, 3])[0], y[:, 3])
    layer.last_only = True
    torch.testing.assert_close(layer(x, starts=starts, start_state=state)[0], y[-1])
    layer.last_only = False
    if name != "delta-product":
        layer.checkpoint = "sqrt"
        x = x.requires_grad_()
        found, _ = layer(x, starts=starts, start_state=state)
        layer.checkpoint = "none"
        whole, _ = layer(x, starts=starts, start_state=state)
        grads = [torch.autograd.grad(z.abs().square().sum(), x)[0] for z in (found, whole)]
        assert torch.equal(found, y) and torch.equal(*grads)


def test_half_precision_and_other_devices():
    layer = it.nn.ScoRNN(D, N).bfloat16()
    y, _ = layer(torch.randn(T, B, D).bfloat16(), starts=marks(), start_state=torch.randn(1, B, N).bfloat16())
    assert y.dtype == torch.bfloat16 and y.isfinite().all()
    far = it.nn.GRU(D, N).to("meta")
    assert far(torch.empty(T, B, D, device="meta"), starts=marks().to("meta"))[0].shape == (T, B, N)


def test_refusals():
    layer, x = it.nn.ScoRNN(D, N), torch.randn(T, B, D)
    for bad in ((2, B, N), (B, 1, B, N), (B, N)):
        with pytest.raises(ValueError, match="start_state must have shape"):
            layer(x, starts=marks(), start_state=torch.zeros(bad))
    right = torch.zeros(1, B, N)
    for bad in (right.double(), right + 0j, (right, right)):
        with pytest.raises(TypeError, match="start_state must"):
            layer(x, starts=marks(), start_state=bad)
    with pytest.raises(ValueError, match="must not be given without starts"):
        layer(x, start_state=right)
    with pytest.raises(ValueError, match="PackedSequence"):
        layer(pack_sequence([x[:, 0], x[:3, 1]]), starts=marks())


def test_onnx_has_no_marks():
    layer, x = it.nn.ScoRNN(D, N), torch.randn(T, B, D)
    onnx = pytest.importorskip("isometry.integrations.onnx", reason="needs the package onnx")
    pytest.importorskip("onnxscript")
    with pytest.raises(Exception, match="starts"):
        onnx.export(layer, (x,), kwargs={"starts": marks()})
