"""Devices without kernels: the delta rule and flash-linear-attention, weights of parametrizations; counts of calls.

A module that computes the formula takes the place of that library, a substitute that of a CUDA device.
"""

import sys
from types import ModuleType

import pytest
import torch

import isometry.torch as it
from device_calls import Counter, counted
from elsewhere import Elsewhere
from isometry.torch.delta import _library
from isometry.torch.formulas import delta as formula
from isometry.torch.parametrizations import _maps, _square, _thin
from isometry.torch.parametrizations._signs import signs
from orthogonal_weights import EVERY, MAPS, gap, linear, original
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


TYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
BASES = pytest.mark.parametrize("based", [True, False], ids=["base", "no base"])
THIN, SQUARE = [(9, 4), (5, 1), (2, 3, 70, 3)], [(1, 1), (6, 6), (2, 3, 5, 5), (0, 4, 4)]
SHAPES = [*((name, shape) for name in MAPS for shape in THIN), *(("matrix_exp", shape) for shape in SQUARE)]
#: Map, shape, dtype and keywords of the weight, calls forward and backward.
CALLS = [
    *((name, shape, torch.float32, {}, most) for shape in ((512, 32), (32, 512), (48, 16)) for name, most in (
        ("householder", (20, 25)), ("cayley", (30, 30)), ("matrix_exp", (30, 30)),
    )),
    *(("matrix_exp", (8, 8), dtype, {"use_trivialization": trivialised}, (10, 60))
      for dtype in (torch.float32, torch.complex64) for trivialised in (True, False)),
]  # fmt: skip


def on_meta(shape, name, dtype=torch.float32, **keywords):
    layer = linear(*shape, dtype=dtype)
    return it.parametrizations.orthogonal(layer, orthogonal_map=name, **keywords).to("meta")


@pytest.mark.parametrize(("name", "shape", "dtype", "keywords", "most"), CALLS, ids=str)
def test_calls(name, shape, dtype, keywords, most):
    layer = on_meta(shape, name, dtype, **keywords)
    forward, w = counted(lambda: layer.weight)
    backward, _ = counted(lambda: w.backward(torch.empty_like(w)))
    assert original(layer).grad.shape == w.shape == shape
    assert forward <= most[0] and backward <= most[1]


def drawn(shape, dtype, based):
    """X with some of its diagonal near 0 where it is thin, and a base."""
    x, base = torch.randn(shape, dtype=dtype), torch.linalg.qr(torch.randn(shape, dtype=dtype))[0] if based else None
    if shape[-1] < shape[-2]:
        diagonal = x.diagonal(dim1=-2, dim2=-1)
        diagonal[..., ::2] = 0.1 * diagonal[..., ::2]
        base = _maps.packed(base) if based else None
    return x.requires_grad_(), base


def signs_of(name, x):
    return signs(x.detach()) if name == "householder" else None


def of_formula(name, x, base):
    return _maps._weight(name, x, signs_of(name, x), base)


def weight(name, x, base):
    """As on a device without kernels."""
    formula = lambda *given: of_formula(name, *given)
    if x.shape[-1] < x.shape[-2]:
        return _thin.weight(name, formula, x, base)
    return _square.weight(formula, x, base)


def both(run, x, base, ct):
    """W and the gradient of X."""
    x = x.detach().requires_grad_()
    w = run(x, base)
    return w.detach(), torch.autograd.grad(w, x, ct)[0]


@TYPES
@BASES
@pytest.mark.parametrize(("name", "shape"), SHAPES, ids=str)
def test_values_and_gradients_are_those_of_the_formula(name, shape, based, dtype):
    x, base = drawn(shape, torch.float64 if name == "householder" else dtype, based)
    ct, run = torch.randn_like(x), lambda x, base: weight(name, x, base)
    found, expected = both(run, x, base, ct), both(lambda *given: of_formula(name, *given)[0], x, base, ct)
    for a, b, bound in zip(found, expected, (1e-13, 1e-12), strict=True):
        close(a, b, bound)
    with torch.no_grad():
        assert torch.equal(run(x, base), found[0])


@pytest.mark.parametrize(("name", "shape"), [*((name, (5, 2)) for name in MAPS), ("matrix_exp", (4, 4))], ids=str)
def test_second_derivatives(name, shape):
    x, base = drawn(shape, torch.float64, True)
    assert torch.autograd.gradgradcheck(lambda x: weight(name, x, base), x, fast_mode=True)


@EVERY
@BASES
def test_no_matrices(based, name):
    x = torch.empty(0, 9, 4, device="meta", requires_grad=True)
    w = _maps.weight(name, x, signs_of(name, x), x.detach() if based else None)
    assert torch.autograd.grad(w.sum(), x)[0].shape == w.shape == (0, 9, 4)


@EVERY
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_orthogonal_far_from_the_base(dtype, scale, name):
    """At most twice as far from orthonormal as by the formula."""
    x, base = drawn((300, 5), dtype, True)
    x = scale * x.detach()
    found, expected = gap(weight(name, x, base)), gap(of_formula(name, x, base)[0])
    assert found <= 2 * expected + 20 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("norm", [0.1, 3.0, 30.0, 100.0])
@pytest.mark.parametrize("large", [1.0, 1e6, 1e-30])
def test_as_accurate_as_the_formula(dtype, norm, large):
    """For norms of A up to 100, of any cotangent, beside double precision, in which both agree."""
    n = 40
    x, base = drawn((n, n), dtype, True)
    x = x.detach()
    lower = x.tril()
    x = x * (norm / torch.linalg.matrix_norm(lower - lower.mH, 2))
    ct = large * torch.randn(n, n, dtype=dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    found = both(lambda *given: weight("matrix_exp", *given), x, base, ct)
    formula = both(lambda *given: of_formula("matrix_exp", *given)[0], x, base, ct)
    exact = both(lambda *given: of_formula("matrix_exp", *given)[0], x.to(wide), base.to(wide), ct.to(wide))
    eps = torch.finfo(dtype).eps
    for a, b, c in zip(found, formula, exact, strict=True):
        error, allowed = ((t - c).abs().max() / c.abs().max() for t in (a, b))
        assert error <= 2 * allowed + 30 * eps
    assert gap(found[0]) <= 2 * gap(formula[0]) + 10 * eps


@pytest.mark.parametrize(
    ("way", "name", "shape"), [*((_thin, name, (9, 4)) for name in MAPS), (_square, "matrix_exp", (4, 4))], ids=str
)
def test_layers_there_take_this_way(way, name, shape, monkeypatch):
    """Of a device and, thin ones, of the meta device under a mode that observes operations; not on the CPU, nor those
    of another way, nor inside torch.func."""
    taken, run = [], way.weight
    monkeypatch.setattr(way, "weight", lambda *given: taken.append(1) or run(*given))
    layer = linear(*shape)
    it.parametrizations.orthogonal(layer, orthogonal_map=name)
    here = layer.weight.detach().clone()
    for other, size in [(name, (8, 8))] if way is _thin else [("cayley", (8, 8)), ("householder", (8, 8))]:
        assert on_meta(size, other).weight.shape == size
    assert (
        torch.func.grad(lambda x: on_meta(shape, name).parametrizations.weight[0](x).sum())(
            torch.empty(shape, device="meta")
        ).shape
        == shape
    )
    assert not taken
    if way is _thin:
        with Counter():
            assert on_meta(shape, name).weight.shape == shape
        assert taken.pop()
    with Elsewhere() as device:
        device.send(layer)
        there = layer.weight
        there.sum().backward()
    assert taken == [1]
    close(there.detach(), here, 1e-13)


def test_complex_reflections_and_trained_bases_take_the_formula(monkeypatch):
    """On the meta device, whose torch has no exponential of its own."""
    monkeypatch.setattr(_thin, "weight", None)
    monkeypatch.setattr(_square, "weight", None)
    x = torch.empty(9, 4, dtype=torch.complex64, device="meta")
    assert _maps.weight("householder", x, x.real[0], x).shape == (9, 4)
    assert _maps.weight("cayley", x, None, x.clone().requires_grad_()).shape == (9, 4)
    x = torch.empty(4, 4, device="meta")
    assert _maps.weight("matrix_exp", x, None, x.clone().requires_grad_()).shape == (4, 4)


@EVERY
def test_autocast(name):
    x, base = drawn((9, 4), torch.float32, True)
    with torch.autocast("cpu", torch.bfloat16):
        w = weight(name, x, base)
        (grad,) = torch.autograd.grad(w.sum(), x)
    assert gap(w) < 2e-6 and grad.dtype is torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("name", "shape"), [*((name, (9, 4)) for name in MAPS), ("matrix_exp", (8, 8))], ids=str)
def test_half_precision_is_rounded_at_the_end(name, shape, dtype):
    layer = on_meta(shape, name).to(dtype)
    layer.weight.sum().backward()
    assert layer.weight.dtype is original(layer).grad.dtype is dtype
