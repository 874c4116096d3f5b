"""Every layer inside of `use_backend("gpu")`: the numbers of the CPU."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import isometry.torch as it
import tolerance
from isometry.gpu._coverage import has_cell
from layers import OF_CELLS, B, D, N, T, build, draw, each_kind, states

#: The layers that are left to the CPU, of cells without kernels on the GPU.
LEFT = {name for name in OF_CELLS if not has_cell(name)}
#: Packed sequences of these lengths.
LENGTHS = (2, T, 1)


def close(found, expected, what):
    assert found.dtype == expected.dtype
    tolerance.close(found.detach(), expected.detach(), tolerance.sequence_gradient("float32", N, 2 * T), what)


def single(*shape, seed=0):
    return draw(*shape, seed=seed, dtype=torch.float32)


def packed():
    return pack_sequence([single(k, D, seed=k) for k in LENGTHS], enforce_sorted=False)


#: name -> (keywords of the layer, input, the batch of the initial states; None without).
INPUTS = {
    "plain": ({}, lambda: single(T, B, D), None),
    "states": ({}, lambda: single(T, B, D), (B,)),
    "batch_first": ({"batch_first": True}, lambda: single(B, T, D), (B,)),
    "no batch": ({}, lambda: single(T, D), ()),
    "an empty batch": ({"trainable_h0": True}, lambda: single(T, 0, D), None),
    "packed": ({}, packed, (len(LENGTHS),)),
    "trained state": ({"trainable_h0": True, "bias": False}, packed, None),
}


def run(layer, x, batch):
    """Output, last states, and all gradients."""
    data = x.data if isinstance(x, PackedSequence) else x
    given = [data.requires_grad_(), *layer.parameters()]
    h0 = None
    if batch is not None:
        h0 = states(layer, 4, *batch, dtype=torch.complex64 if layer.is_complex else torch.float32).requires_grad_()
        given.append(h0)
    out, last = layer(x, h0)
    out = out.data if isinstance(x, PackedSequence) else out
    score = sum((t.abs().square() + t.real).sum() for t in (out, last))
    return out, last, *torch.autograd.grad(score, given)


@each_kind
@pytest.mark.parametrize("form", INPUTS)
def test_layers_are_those_of_the_cpu(form, name, calls):
    """Two layers, two directions."""
    keywords, make, batch = INPUTS[form]
    layer = build(name, 2, bidirectional=True, dtype=torch.float32, **keywords)
    results = []
    for backend in ("cpu", "gpu"):
        with it.use_backend(backend):
            results.append(run(layer, make(), batch))
        assert calls.taken().backends == {"cpu" if name in LEFT else backend}
    for k, (expected, found) in enumerate(zip(*results, strict=True)):
        close(found, expected, f"{name}, {form}, {k}")
