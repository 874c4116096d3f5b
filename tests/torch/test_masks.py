"""`mask=` of a layer against calls of the steps that count."""

import pytest
import torch
from torch.testing import assert_close

import isometry.torch as it
from layers import MATRIX, B, D, N, T, build, draw, each_kind, initial, states

MASKS = {
    "all": torch.ones(T, B, dtype=torch.bool),
    "none": torch.zeros(T, B, dtype=torch.bool),
    "ends": torch.arange(T).unsqueeze(1) < torch.tensor([T, 1, 0, 3]),
    "anywhere": torch.rand(T, B, generator=torch.Generator().manual_seed(3)) < 0.6,
}
CLOSE = {"rtol": 1e-9, "atol": 1e-10}
KINDS = [name for name in each_kind.args[1] if name not in MATRIX]


#: Masks, and the initial states of the layer.
CASES = [*((mask, "given") for mask in MASKS), ("none", "trained"), ("ends", "trained"), ("anywhere", "zero")]


def alone(layer, x, mask, hx):
    """The steps of each sequence that count in a call of its own; the others have the state before or behind them."""
    n, outputs, lasts = layer.hidden_size, [], []
    for b in range(B):
        first, count, given = hx[:, b : b + 1], mask[:, b].cumsum(0), x[mask[:, b], b : b + 1]
        y, last = layer(given, first) if len(given) else (hx.new_zeros(0, 1, 2 * n), first)
        forward = torch.cat((first[-2:-1, :, :n], y[..., :n]))
        backward = torch.cat((y[..., n:], first[-1:, :, :n]))
        outputs.append(torch.cat((forward[count], backward[count - mask[:, b].long()]), -1))
        lasts.append(last)
    return torch.cat(outputs, 1), torch.cat(lasts, 1)


@pytest.mark.parametrize(("mask", "start"), CASES)
@pytest.mark.parametrize("name", KINDS)
def test_steps_outside_the_mask_are_left_out(name, mask, start):
    """Outputs, last states and gradients, of two layers and directions; the input there may be anything."""
    mask, first = MASKS[mask], start != "given"
    layer = build(name, 2, bidirectional=True, trainable_h0=start == "trained")
    turned = (lambda t: t.transpose(0, 1)) if first else (lambda t: t)
    x = draw(T, B, D, seed=6).masked_fill(~mask.unsqueeze(-1), float("nan")).requires_grad_()
    dtype = torch.complex128 if layer.is_complex else torch.float64
    h0 = states(layer, 4, B, seed=5, dtype=dtype).requires_grad_() if start == "given" else None
    inputs, results = [x, *([] if h0 is None else [h0]), *layer.parameters()], []
    expected = alone(layer, x, mask, initial(layer, B) if h0 is None else h0)
    layer.batch_first = first
    found, last = layer(turned(x), h0, mask=turned(mask))
    for output, ends in (expected, (turned(found), last)):
        loss = (output * draw(*output.shape, seed=7)).real.sum() + ends.abs().square().sum()
        grads = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
        results.append((output, ends, *grads))
    assert_close(results[1], results[0], rtol=1e-7, atol=1e-9)
    layer.last_only = True
    output, ends = layer(turned(x), h0, mask=turned(mask))
    assert_close(ends, last)
    assert_close(output, torch.cat((last[2, :, :N], last[3, :, :N]), -1))


def test_an_lstm_takes_pairs_and_transforms():
    layer, mask = it.nn.LSTM(D, N, 2, dtype=torch.float64), MASKS["anywhere"]
    x, pair = draw(3, T, B, D), (draw(2, B, N, seed=1), draw(2, B, N, seed=2))
    want = [layer(one, pair, mask=mask) for one in x]
    assert [t.shape for t in want[0][1]] == [(2, B, N)] * 2
    found = torch.func.vmap(lambda one: layer(one, pair, mask=mask))(x)
    assert_close(found[0], torch.stack([each[0] for each in want]), **CLOSE)
    assert_close(found[1][1], torch.stack([each[1][1] for each in want]), **CLOSE)
    assert layer(x[0, :, :0], mask=mask[:, :0])[0].shape == (T, 0, N)


def test_refusals():
    layer, x, mask = build("gru"), draw(T, B, D), MASKS["ends"]
    packed = torch.nn.utils.rnn.pack_sequence([x[:, 0]])
    for call, error, message in (
        (lambda: layer(x, mask=mask.double()), TypeError, "mask must be bool, not float64"),
        (lambda: layer(x, mask=[True]), TypeError, "mask must be a torch.Tensor of bools, not list"),
        (lambda: layer(x, mask=mask.T), ValueError, "mask must have the shape of the input without its features"),
        (lambda: layer(x[0], mask=mask), ValueError, "mask needs a batch of sequences: input must be 3D, not 2D"),
        (lambda: layer(packed, mask=mask), ValueError, "mask must not be given with a PackedSequence"),
        (lambda: layer(x, mask=mask, starts=mask), ValueError, "mask must not be given together with starts"),
        (lambda: layer(x[:0], mask=mask[:0]), RuntimeError, "sequence length to be larger than 0"),
        (lambda: build("delta-product")(x, mask=mask), ValueError, "mask needs a layer whose output is its state"),
    ):
        with pytest.raises(error, match=message):
            call()
