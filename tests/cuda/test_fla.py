"""The delta rule in half precision on CUDA by flash-linear-attention, against the kernels of the CPU in float32."""

import pytest
import torch

import isometry.torch as it
from isometry.torch.delta import _library
from tolerance import close

pytest.importorskip("fla")

K, V = 64, 32
#: What computes it, and (H, HV, reflections of a token, gate).
FORMS = [
    ("delta_rule.chunk_delta_rule", (2, 2, 1, None)),
    ("gated_delta_rule.chunk_gated_delta_rule", (2, 2, 1, "head")),
    ("gated_delta_rule.chunk_gated_delta_rule", (2, 4, 1, "head")),
    ("gated_delta_product.chunk_gated_delta_product", (2, 2, 2, None)),
    ("gated_delta_product.chunk_gated_delta_product", (2, 2, 2, "head")),
    ("kda.chunk_kda", (2, 2, 1, "row")),
]
ENDS = {"a batch": None, "packed": (0, 70, 71, 200)}


def drawn(form, sequences, length, dtype):
    """Tensors on the host by name, all but the state rounded to half precision."""
    keys, values, m, gate = form
    generator = torch.Generator().manual_seed(0)
    new = lambda *shape: torch.randn(shape, generator=generator)
    batch = 1 if sequences > 1 else 2
    named = {
        "q": new(batch, length, keys, K),
        "k": new(batch, m * length, keys, K),
        "v": new(batch, m * length, values, V),
        "beta": new(batch, m * length, values).sigmoid(),
    }
    if gate:
        shape = (batch, length, values, K) if gate == "row" else (batch, length, values)
        named["g"] = torch.nn.functional.logsigmoid(new(*shape) + 3)
    named = {name: x.to(dtype).float() for name, x in named.items()}
    return named | {"initial_state": 0.1 * new(max(batch, sequences), values, K, V)}


def results(named, cts, **keywords):
    """Values and gradients."""
    leaves = {name: x.detach().requires_grad_() for name, x in named.items()}
    out = it.delta_rule(**leaves, normalise=True, **keywords)
    cts = [ct.to(x.device, x.dtype) for ct, x in zip(cts, out, strict=True)]
    return [*out, *torch.autograd.grad(out, list(leaves.values()), cts)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(("name", "form"), FORMS, ids=str)
def test_values_and_gradients(name, form, ends, dtype, monkeypatch):
    """By the library, with a state, normalised keys and shared heads where it has them."""
    calls, function = [], _library._function
    monkeypatch.setattr(_library, "_function", lambda name: calls.append(name) or function(name))
    assert function(name) is not None, "the installed release of the library has it"
    sequences = 1 if ENDS[ends] is None else len(ENDS[ends]) - 1
    named = drawn(form, sequences, 200, dtype)
    keywords = {"householders": form[2]}
    if ENDS[ends]:
        keywords["cu_seqlens"] = torch.tensor(ENDS[ends])
    generator = torch.Generator().manual_seed(1)
    cts = [torch.randn(x.shape, generator=generator) for x in it.delta_rule(**named, normalise=True, **keywords)]
    expected = results(named, cts, **keywords)
    there = {n: x.cuda() if n == "initial_state" else x.to("cuda", dtype) for n, x in named.items()}
    if ENDS[ends]:
        keywords["cu_seqlens"] = keywords["cu_seqlens"].cuda()
    calls.clear()
    found = results(there, cts, **keywords)
    assert set(calls) == {name}
    for what, a, b in zip(("o", "state", *named), found, expected, strict=True):
        close(a.detach().cpu().double(), b.detach().double(), 2e-2, what)
