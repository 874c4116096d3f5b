"""`mask=` of a layer against a loop of single steps, and what programs written for torch's layers read of ours."""

import pytest
import torch
from torch.testing import assert_close

import isometry.torch as it
from layers import MATRIX, B, D, N, T, build, draw, each_kind, each_of_torch, states, twins

MASKS = {
    "all": torch.ones(T, B, dtype=torch.bool),
    "none": torch.zeros(T, B, dtype=torch.bool),
    "ends": torch.arange(T).unsqueeze(1) < torch.tensor([T, 1, 0, 3]),
    "anywhere": torch.rand(T, B, generator=torch.Generator().manual_seed(3)) < 0.6,
}
CLOSE = {"rtol": 1e-9, "atol": 1e-10}
KINDS = [name for name in each_kind.args[1] if name not in MATRIX]


def loop(layer, x, mask, h, reverse=False):
    """One layer of one direction: a call per step, whose state is taken where the mask is set."""
    outputs = []
    for t in reversed(range(T)) if reverse else range(T):
        new = layer(x[t : t + 1].nan_to_num(0.0), h)[1]
        h = torch.where(mask[t].view(1, B, *[1] * (new.dim() - 2)), new, h.to(new.dtype))
        outputs.append(h[0, ..., : layer.hidden_size])
    return torch.stack(outputs[::-1] if reverse else outputs), h


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_steps_outside_the_mask_are_left_out(name, mask, batch_first):
    """Outputs, last states and gradients; the input there may be anything."""
    layer, mask = build(name, batch_first=batch_first), MASKS[mask]
    h0 = states(layer, 1, B, seed=5)
    x = draw(T, B, D, seed=6).masked_fill(~mask.unsqueeze(-1), float("nan"))
    turned = (lambda t: t.transpose(0, 1)) if batch_first else (lambda t: t)
    plain = build(name)
    found, slopes = [], []
    for each, run in (
        (plain, lambda x, h: loop(plain, x, mask, h)),
        (layer, lambda x, h: layer(turned(x), h, mask=turned(mask))),
    ):
        given, start = x.clone().requires_grad_(), h0.clone().requires_grad_()
        output, last = run(given, start)
        output = output if each is plain else turned(output)
        weights = draw(*output.shape, seed=7), draw(*last.shape, seed=8)
        loss = sum((t * w).real.sum() for t, w in zip((output, last), weights, strict=True))
        loss = loss + sum(t.imag.sum() for t in (output, last) if t.is_complex())
        inputs = (given, start, *each.parameters())
        own = torch.autograd.grad(loss, inputs, allow_unused=True)
        found.append((output.detach(), last.detach()))
        slopes.append([torch.zeros_like(p) if g is None else g for g, p in zip(own, inputs, strict=True)])
    assert_close(found[1], found[0], **CLOSE)
    assert_close(slopes[1], slopes[0], rtol=1e-7, atol=1e-9)
    assert torch.equal(slopes[1][0] != 0, (slopes[1][0] != 0) & mask.unsqueeze(-1))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("start", ["zero", "trained", "given"])
def test_several_layers_and_directions(start, mask):
    layer, mask = build("gru", 2, bidirectional=True, trainable_h0=start == "trained"), MASKS[mask]
    h0, x = states(layer, 4, B, seed=5) if start == "given" else None, draw(T, B, D, seed=6)
    before = h0
    if before is None:
        own = [layer._start(suffix) for suffix in layer._suffixes]
        before = torch.stack([torch.zeros(B, N).double() if h is None else h.expand(B, N) for h in own])
    output, last = layer(x, h0, mask=mask)
    inputs, ends = x, []
    for k in range(2):
        outputs = []
        for reverse in (False, True):
            one = it.nn.GRU(inputs.shape[-1], N, dtype=torch.float64)
            suffix = f"_l{k}" + "_reverse" * reverse
            with torch.no_grad():
                for name, p in one.named_parameters():
                    p.copy_(getattr(layer, name.removesuffix("_l0") + suffix))
            states_, end = loop(one, inputs, mask, before[2 * k + reverse].unsqueeze(0), reverse)
            outputs.append(states_)
            ends.append(end[0])
        inputs = torch.cat(outputs, -1)
    assert_close(output, inputs, **CLOSE)
    assert_close(last, torch.stack(ends), **CLOSE)


@pytest.mark.parametrize("mask", MASKS)
def test_last_only(mask):
    keywords = {"bidirectional": True, "num_layers": 2}
    layer, short = build("gru", **keywords), build("gru", **keywords, last_only=True)
    x, h0 = draw(T, B, D), states(layer, 4, B, seed=5)
    last = layer(x, h0, mask=MASKS[mask])[1]
    output, own = short(x, h0, mask=MASKS[mask])
    assert_close(own, last)
    assert_close(output, torch.cat((last[2], last[3]), -1))


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


@each_of_torch
@pytest.mark.parametrize("keywords", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}], ids=str)
def test_weights_in_the_order_of_torch(name, keywords):
    """`all_weights` are the parameters and `_all_weights` their names, by which programs write to them."""
    theirs, ours = twins(name, **keywords)
    assert ours.proj_size == theirs.proj_size
    with torch.no_grad():
        for layer in (theirs, ours):
            for k, row in enumerate(layer._all_weights):
                for i, own in enumerate(row):
                    getattr(layer, own).fill_(0.1 * (k - i))
    assert_close(it.nn.to_torch(ours).state_dict(), theirs.state_dict(), rtol=0, atol=0)
    for ours_row, own, theirs_row in zip(ours.all_weights, ours._all_weights, theirs.all_weights, strict=True):
        assert all(p is getattr(ours, attribute) for p, attribute in zip(ours_row, own, strict=True))
        assert [p.numel() for p in ours_row] == [p.numel() for p in theirs_row]
