"""The delta rule on devices without kernels: counts of its calls, and flash-linear-attention where it is installed.

A module that computes the formula takes the place of that library, a substitute that of a CUDA device.
"""

import sys
from types import ModuleType

import pytest
import torch

import isometry.torch as it
from device_calls import counted
from elsewhere import Elsewhere
from isometry.torch.delta import _library
from isometry.torch.formulas import delta as formula
from test_delta import NAMES, arguments
from tolerance import close

FUNCTIONS = {
    "delta_rule": "chunk_delta_rule",
    "gated_delta_rule": "chunk_gated_delta_rule",
    "gated_delta_product": "chunk_gated_delta_product",
    "kda": "chunk_kda",
}
#: (B, T, m, H, HV, K, V, gate): the sizes that each takes.
SIZES = {
    "chunk_delta_rule": (2, 7, 1, 2, 2, 6, 5, None),
    "chunk_gated_delta_rule": (2, 7, 1, 1, 2, 6, 5, "head"),
    "chunk_gated_delta_product": (2, 7, 3, 2, 2, 6, 5, "head"),
    "chunk_kda": (2, 7, 1, 1, 2, 6, 5, "row"),
}
#: What none takes: grouped values without gates or with several rows per token, gates of rows with several rows per
#: token, long keys, single and double precision.
OTHERS = [
    ((2, 7, 1, 1, 2, 6, 5, None), torch.bfloat16),
    ((2, 7, 3, 1, 2, 6, 5, "head"), torch.bfloat16),
    ((2, 7, 3, 2, 2, 6, 5, "row"), torch.bfloat16),
    ((1, 2, 1, 1, 1, 257, 5, None), torch.bfloat16),
    (SIZES["chunk_kda"], torch.float32),
    (SIZES["chunk_kda"], torch.float64),
]


class Once(torch.autograd.Function):
    """The formula, with a gradient that has none itself."""

    @staticmethod
    def forward(ctx, keywords, *given):
        ctx.keywords = keywords
        ctx.save_for_backward(*given)
        return run(keywords, given)

    @staticmethod
    def backward(ctx, *cts):
        with torch.enable_grad():
            leaves = [None if t is None else t.detach().requires_grad_() for t in ctx.saved_tensors]
            out = run(ctx.keywords, leaves)
        found = iter(torch.autograd.grad(out, [t for t in leaves if t is not None], cts))
        return None, *[None if t is None else next(found).detach() for t in leaves]


def run(keywords, given):
    o, state = formula.delta_rule(*[t if t is None else t.float() for t in given], *keywords)
    return o.to(given[2].dtype), state


@pytest.fixture
def library(monkeypatch):
    """The names of the functions that were called, each with its arguments."""
    calls = []

    def named(name):
        def function(
            q, k, v, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, cu_seqlens, **more
        ):
            assert output_final_state and {t.dtype for t in (q, k, v)} == {torch.bfloat16}
            assert initial_state is None or initial_state.dtype is torch.float32
            assert ("g" in more) == (name != "chunk_delta_rule")
            assert ("num_householder" in more) == (name == "chunk_gated_delta_product")
            calls.append(name)
            ends = None if cu_seqlens is None else cu_seqlens.tolist()
            m = more.get("num_householder", 1)
            keywords = ends, m, scale, use_qk_l2norm_in_kernel
            return Once.apply(keywords, q, k, v, beta, more.get("g"), initial_state)

        return function

    _library._function.cache_clear()
    package = ModuleType("fla")
    package.__version__ = "0.5.2"
    monkeypatch.setitem(sys.modules, "fla", package)
    monkeypatch.setitem(sys.modules, "fla.ops", ModuleType("fla.ops"))
    for module, name in FUNCTIONS.items():
        made = ModuleType(f"fla.ops.{module}")
        setattr(made, name, named(name))
        monkeypatch.setitem(sys.modules, made.__name__, made)
    yield calls
    _library._function.cache_clear()


def given(sizes, dtype=torch.bfloat16, **keywords):
    """Tensors by name; the state is in float32."""
    named = {name: torch.from_numpy(x).to(dtype) for name, x in arguments(sizes, **keywords).items()}
    if "initial_state" in named and dtype is torch.bfloat16:
        named["initial_state"] = named["initial_state"].float()
    return {name: x.requires_grad_() for name, x in named.items()}


def called(named, **keywords):
    rest = dict(named)
    return it.delta_rule(*[rest.pop(name) for name in NAMES[:4]], **rest, **keywords)


def sent(device, named):
    return {name: device.send(x.detach().requires_grad_()) for name, x in named.items()}


@pytest.mark.parametrize("name", SIZES)
def test_values_and_gradients(name, library):
    """With what a user writes to an output no part of the graph; and once more without gradients."""
    named, m = given(SIZES[name]), SIZES[name][2]
    expected = called(named, householders=m, normalise=True)
    cts = [torch.randn_like(x) for x in expected]
    bars = torch.autograd.grad(expected, list(named.values()), cts)
    assert not library
    with Elsewhere() as device:
        there = sent(device, named)
        found = called(there, householders=m, normalise=True)
        assert library == [name]
        values = [x.detach().clone() for x in found]
        found[0].detach().zero_()
        own = torch.autograd.grad(found, list(there.values()), [device.send(ct) for ct in cts])
        with torch.no_grad():
            called(there, householders=m, normalise=True)
        assert library == 2 * [name] and not device.fetched
    for a, b in zip((*values, *own), (*expected, *bars), strict=True):
        assert a.dtype is b.dtype
        close(a.detach().double(), b.detach().double(), 2e-2)


def test_second_derivatives_are_those_of_the_formula(library):
    named = given(SIZES["chunk_gated_delta_rule"])

    def twice(named):
        o, state = called(named)
        (bar,) = torch.autograd.grad(o.float().square().sum() + state.sum(), named["v"], create_graph=True)
        return torch.autograd.grad(bar.float().square().sum(), named["k"])[0]

    expected = twice(named)
    assert not library
    with Elsewhere() as device:
        found = twice(sent(device, named))
    assert library == ["chunk_gated_delta_rule"]
    assert expected.any()
    close(found.double(), expected.double(), 5e-2)


def test_sequences_that_follow_each_other(library):
    named = given((1, 9, 1, 1, 2, 6, 5, "head"), state=False)
    ends = [0, 4, 9]
    expected = called(named, cu_seqlens=ends)
    with Elsewhere() as device:
        there = sent(device, named)
        found = called(there, cu_seqlens=ends)
        assert library == ["chunk_gated_delta_rule"]
        called(there, cu_seqlens=[0, 4, 4, 9])
        assert len(library) == 1  # an empty sequence
    for a, b in zip(found, expected, strict=True):
        close(a.detach().double(), b.detach().double(), 2e-2)


@pytest.mark.parametrize(("sizes", "dtype"), OTHERS, ids=str)
def test_what_the_library_does_not_take(sizes, dtype, library):
    with Elsewhere() as device:
        called(sent(device, given(sizes, dtype)), householders=sizes[2])
    assert not library


@pytest.mark.parametrize("broken", ["missing", "old"])
def test_a_library_that_does_not_load(broken, library, monkeypatch):
    if broken == "old":
        monkeypatch.setattr(sys.modules["fla"], "__version__", "0.4.9")
    else:
        monkeypatch.setitem(sys.modules, "fla.ops.delta_rule", None)
    named = given(SIZES["chunk_delta_rule"])
    with Elsewhere() as device:
        found = called(sent(device, named))
    assert not library
    for a, b in zip(found, called(named), strict=True):
        close(a.detach().double(), b.detach().double(), 2e-2)


@pytest.mark.parametrize(("gate", "forward", "backward"), [(None, 2, 7), ("head", 3, 10), ("row", 3, 10)])
def test_calls_per_chunk(gate, forward, backward):
    """On the meta device: two products and a decay."""
    rows = 16 if gate == "row" else 64
    counts = []
    for chunks in (10, 20):
        named = {
            name: x.to("meta") for name, x in given((1, rows * chunks, 1, 1, 2, 6, 5, gate), torch.float32).items()
        }
        named = {name: x.detach().requires_grad_() for name, x in named.items()}
        there, (o, _) = counted(lambda named=named: called(named))
        back, _ = counted(lambda o=o: o.backward(torch.empty_like(o)))
        counts.append((there, back))
    (f0, b0), (f1, b1) = counts
    assert (f1 - f0) / 10 <= forward and (b1 - b0) / 10 <= backward
