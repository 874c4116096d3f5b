"""flash-linear-attention's names: signatures, what every argument means, and refusals, against the token loop."""

import inspect
import itertools
import sys

import numpy as np
import pytest
import torch

import isometry.torch as it
import tolerance as tol
from derivatives import compiled
from isometry.integrations.transformers import register
from reference import delta as ref
from test_delta import NAMES as ARGUMENTS
from test_delta import arguments

#: The arguments that the library takes by position, in its order; optional ones with their defaults in `DEFAULTS`.
SIGNATURES = {
    "chunk_delta_rule": "q k v beta: scale initial_state output_final_state use_qk_l2norm_in_kernel cu_seqlens "
    "cu_seqlens_cpu",
    "fused_recurrent_delta_rule": "q k v: beta scale initial_state output_final_state use_qk_l2norm_in_kernel "
    "cu_seqlens",
    "chunk_gated_delta_rule": "q k v g beta: scale initial_state output_final_state use_qk_l2norm_in_kernel "
    "use_beta_sigmoid_in_kernel allow_neg_eigval state_v_first cu_seqlens cu_seqlens_cpu cp_context",
    "fused_recurrent_gated_delta_rule": "q k v: g gk gv beta scale initial_state output_final_state "
    "use_qk_l2norm_in_kernel use_gate_in_kernel A_log dt_bias use_beta_sigmoid_in_kernel allow_neg_eigval "
    "state_v_first cu_seqlens",
    "chunk_gated_delta_product": "q k v g beta num_householder: scale initial_state output_final_state "
    "use_qk_l2norm_in_kernel cu_seqlens cu_seqlens_cpu",
    "chunk_kda": "q k v g beta: scale initial_state output_final_state use_qk_l2norm_in_kernel use_gate_in_kernel "
    "use_beta_sigmoid_in_kernel allow_neg_eigval safe_gate lower_bound disable_recompute return_intermediate_states "
    "state_v_first cu_seqlens cu_seqlens_cpu cp_context",
    "fused_recurrent_kda": "q k v g beta: A_log dt_bias scale initial_state output_final_state "
    "use_qk_l2norm_in_kernel use_gate_in_kernel use_beta_sigmoid_in_kernel allow_neg_eigval lower_bound "
    "state_v_first cu_seqlens",
}
FLAGS = ("output_", "use_", "allow_", "safe_", "disable_", "return_", "state_", "transpose_", "head_")
#: What the library takes by its `**kwargs`.
OLDER = {"transpose_state_layout": None}
GATE = {"A_log": None, "dt_bias": None}
MORE = {
    "chunk_delta_rule": {"chunk_size": 64, "head_first": False},
    "chunk_gated_delta_rule": {"use_gate_in_kernel": False, **GATE, "chunk_size": 64, **OLDER, "head_first": False},
    "fused_recurrent_gated_delta_rule": OLDER,
    "chunk_kda": {**GATE, "chunk_size": 64, **OLDER},
    "fused_recurrent_kda": OLDER,
}
FREE = ("chunk_delta_rule", "fused_recurrent_delta_rule")
GATED = ("chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule")
KDA = ("chunk_kda", "fused_recurrent_kda")
HEADS = pytest.mark.parametrize("name", [*GATED, *KDA])
NAMES = pytest.mark.parametrize("name", SIGNATURES)


def problem(name, dtype=torch.float64, tokens=20, batch=2):
    """Arguments that the function takes: no gate, one per head or one per row; two rows per token of a product."""
    gate = "row" if name in KDA else None if name in FREE else "head"
    m = 2 if name == "chunk_gated_delta_product" else 1
    given = arguments((batch, tokens, m, 2, 4, 5, 3, gate))
    more = {"num_householder": 2} if m == 2 else {}
    return {key: torch.from_numpy(x).to(dtype) for key, x in given.items()} | more


def called(name, given, **more):
    return getattr(it.fla, name)(**given | {"output_final_state": True} | more)


def loop(given, **more):
    """The token loop on the same arguments."""
    given = {key: x.double().numpy() if isinstance(x, torch.Tensor) else x for key, x in (given | more).items()}
    if "num_householder" in given:
        given["householders"] = given.pop("num_householder")
    return ref.delta_rule(**given)


def agree(found, expected, bar=1e-12):
    for a, b in zip(found, expected, strict=True):
        tol.close(a.double(), b, bar)


def softplus(x):
    return torch.logaddexp(x, torch.zeros_like(x))


@NAMES
def test_signatures(name):
    found = inspect.signature(getattr(it.fla, name)).parameters.values()
    required, optional = (part.split() for part in SIGNATURES[name].split(":"))
    own = [p for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in own] == [*required, *optional]
    for p in own:
        default = False if p.name.startswith(FLAGS) else None
        assert p.default is (p.empty if p.name in required else default), p.name
    assert {p.name: p.default for p in found if p not in own} == MORE.get(name, {})
    assert all(p.kind is p.KEYWORD_ONLY for p in found if p not in own)
    assert set(it.fla.__all__) == set(SIGNATURES)


@NAMES
def test_values_against_the_token_loop(name):
    given = problem(name)
    agree(called(name, given), loop(given))
    agree(called(name, given, scale=0.3, use_qk_l2norm_in_kernel=True), loop(given, scale=0.3, normalise=True))
    o, state = called(name, given, output_final_state=False)
    assert state is None and torch.equal(o, called(name, given)[0])
    assert getattr(it.fla, name)(**given)[1] is None
    del given["initial_state"]
    agree(called(name, given), loop(given))


@NAMES
def test_packed_sequences(name):
    ends, cuts = [0, 3, 3, 20], [(0, 3), (3, 3), (3, 20)]
    given, m = problem(name, batch=1), 2 if name == "chunk_gated_delta_product" else 1
    states = torch.randn(3, 4, 5, 3, dtype=torch.float64)
    o, last = called(name, given | {"initial_state": states}, cu_seqlens=torch.tensor(ends, dtype=torch.int32))
    for i, (start, end) in enumerate(cuts):
        part = {"initial_state": states[i : i + 1]}
        for key, x in given.items():
            if isinstance(x, torch.Tensor) and key != "initial_state":
                factor = m if key in ("k", "v", "beta") else 1
                part[key] = x[:, start * factor : end * factor]
        expected = called(name, given | part)
        assert torch.equal(o[:, start:end], expected[0]) and torch.equal(last[i : i + 1], expected[1])
    if "cu_seqlens_cpu" in SIGNATURES[name]:
        for keywords in ({"cu_seqlens": torch.tensor(ends)}, {}):
            copy = called(name, given | {"initial_state": states}, cu_seqlens_cpu=torch.tensor(ends), **keywords)
            assert torch.equal(copy[0], o)


@NAMES
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision(name, dtype):
    given = problem(name, dtype)
    o, state = called(name, given)
    assert o.dtype is dtype and state.dtype is torch.float32
    expected, last = loop(given)
    agree([o], [expected], torch.finfo(dtype).eps)
    agree([state], [last], 1e-5)
    if "A_log" in inspect.signature(getattr(it.fla, name)).parameters:
        more = {"use_gate_in_kernel": True, "A_log": torch.zeros(4), "use_beta_sigmoid_in_kernel": True}
        g, beta = -softplus(given["g"].double()), given["beta"].double().sigmoid()
        _, state = called(name, given, **more)
        agree([state], loop(given, g=g, beta=beta)[1:], 1e-5)


@HEADS
@pytest.mark.parametrize("negative", [False, True])
def test_sigmoid_of_the_rates(name, negative):
    given = problem(name)
    rates = given["beta"].sigmoid() * (2 if negative else 1)
    found = called(name, given, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=negative)
    agree(found, loop(given, beta=rates))


@HEADS
def test_arguments_of_gates(name):
    """Factors of any shape, or of one where there is a bound; inputs that are gates already. Their values are tested
    beside the limits."""
    given, factors = problem(name), torch.randn(4, dtype=torch.float64)
    own, plain = {"use_gate_in_kernel": True, "A_log": factors}, called(name, given)
    for x in (factors.reshape(1, 1, 4, 1), factors[:, None]):
        assert torch.equal(called(name, given, **own | {"A_log": x})[0], called(name, given, **own)[0])
    assert torch.equal(called(name, given, **own | {"use_gate_in_kernel": False})[0], plain[0])
    if name in KDA:
        without = own | {"A_log": None, "lower_bound": -4.0}
        agree(called(name, given, **without), loop(given, g=-4 * given["g"].sigmoid()))


@HEADS
def test_states_with_values_first(name):
    given = problem(name)
    o, state = called(name, given)
    first = given | {"initial_state": given["initial_state"].mT.contiguous()}
    found, last = called(name, first, state_v_first=True)
    assert torch.equal(found, o) and torch.equal(last, state.mT)
    assert found.is_contiguous() and last.is_contiguous()
    with pytest.warns(DeprecationWarning, match="^transpose_state_layout is now called state_v_first"):
        older, same = called(name, first, transpose_state_layout=True)
    assert torch.equal(older, o) and torch.equal(same, last)
    for old in (True, False):
        with pytest.raises(ValueError, match="^transpose_state_layout is the old name of state_v_first"):
            called(name, first, state_v_first=True, transpose_state_layout=old)


def test_gates_of_rows_and_rates_of_one():
    given, name = problem("chunk_kda"), "fused_recurrent_gated_delta_rule"
    rows, g = given.pop("g"), -torch.rand(2, 20, 4, dtype=torch.float64)
    agree(called(name, given, gk=rows), loop(given, g=rows))
    agree(called(name, given, g=g, gk=rows), loop(given, g=g[..., None] + rows))
    rates = torch.ones_like(given.pop("beta"))
    agree(called(name, given), loop(given, beta=rates))
    agree(called("fused_recurrent_delta_rule", given), loop(given, beta=rates))


def test_arguments_that_choose_kernels_change_nothing():
    for name, keywords in (
        ("chunk_delta_rule", {"chunk_size": 16}),
        ("chunk_gated_delta_rule", {"chunk_size": 16}),
        ("chunk_kda", {"chunk_size": 32, "safe_gate": True, "disable_recompute": True}),
    ):
        given = problem(name)
        for a, b in zip(called(name, given, **keywords), called(name, given), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("name", KDA)
def test_gradients_reach_every_argument(name):
    """A derivative through the gate and the rates, also in a compiled graph."""
    given = problem(name, tokens=4) | {"A_log": torch.randn(4).double(), "dt_bias": torch.randn(20).double()}
    own = {"use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "state_v_first": True}
    given["initial_state"] = given["initial_state"].mT
    leaves = [x.clone().requires_grad_() for x in given.values()]
    call = lambda *args: called(name, dict(zip(given, args, strict=True)), **own)
    assert torch.autograd.gradcheck(call, leaves, fast_mode=True, check_forward_ad=True)
    if name == "chunk_kda":
        for a, b in zip(compiled(call)(*leaves), call(*leaves), strict=True):
            tol.close(a.detach(), b.detach(), 1e-13)


def ones(*shape):
    return torch.ones(shape, dtype=torch.float64)


ALL, ONE, OF_INPUTS = [*GATED, *KDA], ["chunk_kda"], {"use_gate_in_kernel": True, "A_log": ones(4)}
SIGMOIDS = "use_beta_sigmoid_in_kernel"
#: Functions, arguments, the error and how its message begins.
REFUSED = [
    (["chunk_delta_rule", "chunk_gated_delta_rule"], {"head_first": True}, NotImplementedError, "head_first "),
    (["chunk_gated_delta_rule", "chunk_kda"], {"cp_context": object()}, NotImplementedError, "cp_context "),
    (GATED[1:], {"gv": ones(2, 20, 4, 3)}, NotImplementedError, "gv "),
    (ONE, {"return_intermediate_states": True}, NotImplementedError, "return_intermediate_states "),
    ([n for n in SIGNATURES if "product" not in n], {"beta": ones(2, 20, 4, 3)}, NotImplementedError, "beta "),
    (ALL, {"allow_neg_eigval": True}, ValueError, f"allow_neg_eigval needs {SIGMOIDS}"),
    (ALL, OF_INPUTS | {"A_log": ones(3)}, ValueError, "A_log must have 4 elements"),
    (ALL, OF_INPUTS | {"dt_bias": ones(3)}, ValueError, "dt_bias must have"),
    (ALL, {"g": ones(2, 20, 4, 5, 1)}, ValueError, "g must have shape"),
    (ALL, {"state_v_first": True, "initial_state": ones(3)}, ValueError, "initial_state must have shape"),
    (ALL, {"use_gate_in_kernel": True}, TypeError, "A_log must be a torch.Tensor"),
    (ALL, {"use_qk_l2norm_in_kernel": 1}, TypeError, "use_qk_l2norm_in_kernel must be a bool"),
    (ALL, {"state_v_first": "no"}, TypeError, "state_v_first must be a bool"),
    (ALL, {"output_final_state": None}, TypeError, "output_final_state must be a bool"),
    (ALL, {"beta": [1.0]}, TypeError, "beta must be a torch.Tensor"),
    (ALL, {"beta": ones(2, 20, 4).long(), SIGMOIDS: True}, TypeError, "beta must be float32"),
    (ALL, {"own": 1}, TypeError, ".* unexpected keyword argument"),
    *((ONE, OF_INPUTS | {"safe_gate": True, "lower_bound": b}, ValueError, "safe_gate") for b in (None, 0.0, -5.5)),
    (ONE, {"chunk_size": 16}, ValueError, "chunk_size must be .*32 or 64, not 16$"),
    (FREE[:1], {"chunk_size": 128}, ValueError, "chunk_size must be .*32 or 64, not 128$"),
    (GATED[:1], {"chunk_size": 24}, ValueError, "chunk_size must be .*32 or 64, not 24$"),
    (["chunk_gated_delta_product"], {"num_householder": 0}, ValueError, "num_householder must be at least 1"),
    (GATED, OF_INPUTS | {"g": None}, ValueError, "use_gate_in_kernel needs g"),
    (FREE[1:], {"v": None}, TypeError, "v must be a torch.Tensor"),
]


@pytest.mark.parametrize(("names", "changes", "error", "said"), REFUSED)
def test_what_is_refused(names, changes, error, said):
    for name in names:
        with pytest.raises(error, match=f"^{said}"):
            called(name, problem(name), **changes)


# ---------------------------------------------------------------- gates from extreme parameters, beside the token loop

#: Logarithms of factors, and the numbers that they multiply after softplus or before a sigmoid.
FACTORS = np.array([-800.0, -200, -87, -60, -5, 0, 3, 59, 60, 61, 80, 81, 88, 100, 161, 200, 701, 1000, 1500])
INPUTS = np.array(
    [-1e30, -1e4, -900, -200, -150, -103, -88, -60, -37, -10, -1, -1e-30, 0, 1e-40, 1e-3, 2, 30, 1e4, 1e30]
)
BARS = {torch.float32: 2e-4, torch.float64: 1e-11}


def log_softplus(x):
    return np.where(x < -37, x, np.log(np.logaddexp(0, np.maximum(x, -37))))


def softplus_gates(a, x):
    """-e^a softplus(x), and its derivatives by a and by x; the first is bounded where e of it is 0."""
    with np.errstate(over="ignore"):
        gate, slope = -np.exp(a + log_softplus(x)), -np.exp(a - np.logaddexp(0, -x))
    return gate, gate, slope


def sigmoid_gates(a, x, bound):
    with np.errstate(over="ignore", divide="ignore"):
        u = np.sign(x) * np.exp(a + np.log(np.abs(x)))
        bell = np.exp(-np.logaddexp(0, u) - np.logaddexp(0, -u))
        by_x = bound * np.exp(a - np.logaddexp(0, u) - np.logaddexp(0, -u))
    return bound * np.exp(-np.logaddexp(0, -u)), bound * times(bell, u), by_x


def times(ct, slope):
    """A product whose first factor is 0 in the limit where the second overflows."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(ct == 0, 0, ct * slope)


def at_the_limit(dtype, rows, rng):
    """A sequence of three tokens for every input, a head for every factor."""
    b, t, h, k, v = len(INPUTS), 3, len(FACTORS), 2, 2
    draw = lambda *shape: rng.standard_normal(shape)
    given = {"q": draw(b, t, h, k), "k": draw(b, t, h, k), "v": draw(b, t, h, v), "beta": 2 * rng.random((b, t, h))}
    given["initial_state"] = draw(b, h, k, v)
    x = np.broadcast_to(INPUTS[:, None, None], (b, t, h)) * np.array([1, 1, 0.999])[:, None]
    g = np.broadcast_to(x[..., None], (b, t, h, k)) if rows else x
    return {key: torch.from_numpy(np.array(a)).to(dtype) for key, a in (given | {"g": g}).items()}


def like(found, expected, bar, what):
    """Each entry, relative to its size or 1; what is too large for a precision is infinite in it."""
    found = found.detach().numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        expected, found = np.asarray(expected).astype(found.dtype).astype(float), found.astype(float)
        wrong = ~((found == expected) | (np.abs(found - expected) <= bar * (1 + np.abs(expected))))
    assert not wrong.any(), (what, np.argwhere(wrong)[:5], found[wrong][:5], expected[wrong][:5])


CALLS = [*((name, None) for name in ALL), *((name, -4.0) for name in KDA)]


@pytest.mark.parametrize("dtype", BARS, ids=str)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("name", "bound"), CALLS)
def test_gates_in_the_limit(name, bound, bias, dtype):
    """361 pairs of a factor and an input in each call."""
    rows, rng = name.endswith("kda"), np.random.default_rng(0)
    leaves = at_the_limit(dtype, rows, rng) | {"A_log": torch.from_numpy(FACTORS).to(dtype)}
    if bias:
        own = np.resize([0.0, -3.0, 100.0, -150.0], len(FACTORS))
        leaves["dt_bias"] = torch.from_numpy(own.repeat(2 if rows else 1)).to(dtype)
    for leaf in leaves.values():
        leaf.requires_grad_()
    more = {} if bound is None else {"lower_bound": bound}
    out = getattr(it.fla, name)(**leaves, output_final_state=True, use_gate_in_kernel=True, **more)
    cts = [torch.from_numpy(rng.standard_normal(t.shape)).to(dtype) for t in out]
    found = dict(zip(leaves, torch.autograd.grad(out, list(leaves.values()), cts), strict=True))
    wide = {key: leaf.detach().double().numpy() for key, leaf in leaves.items()}
    a = wide.pop("A_log").reshape(-1, *[1] * rows)
    x = wide.pop("g") + (wide.pop("dt_bias").reshape(-1, *[2] * rows) if bias else 0)
    gates, by_a, by_x = softplus_gates(a, x) if bound is None else sigmoid_gates(a, x, bound)
    arrays = wide | {"g": np.maximum(gates, -1e4)}
    for one, other in zip(out, ref.delta_rule(**arrays), strict=True):
        like(one, other, BARS[dtype], "values")
    o_bar, state_bar = (ct.double().numpy() for ct in cts)
    bars = dict(zip(ARGUMENTS, ref.delta_rule_vjp(**arrays, o_bar=o_bar, state_bar=state_bar), strict=True))
    over = (0, 1, 3) if rows else (0, 1)
    bars["A_log"], bars["g"] = times(bars["g"], by_a).sum(over), times(bars["g"], by_x)
    if bias:
        bars["dt_bias"] = bars["g"].sum((0, 1)).reshape(-1)
    for key, bar in found.items():
        # a sum of infinities of both signs has no limit
        kept = found["g"].isfinite().all(0).all(0).flatten() if key == "dt_bias" else ...
        like(bar[kept], bars[key][kept], BARS[dtype], key)


def test_the_layer_in_the_limit():
    """98 pairs in each precision: one step of the layer is one of the rule with gates of the limit."""
    for dtype, bias, log_decay in itertools.product(BARS, (True, False), (-200.0, 0, 59, 60, 61, 100, 1000)):
        layer = it.nn.DeltaProduct(1, 2, heads=2, bias=bias, dtype=dtype)
        x = torch.tensor([-500.0, -150, -99.5, -58, 0.5, 40, 1e4], dtype=dtype).reshape(1, -1, 1).requires_grad_()
        with torch.no_grad():
            layer.log_decay_l0.fill_(log_decay)
            layer.transition_weight_l0[-2:] = 1
            if bias:
                layer.transition_bias_l0[-2:] = 0
        h0 = torch.ones(1, x.shape[1], 2, 1, 1, dtype=dtype)
        gate = softplus_gates(np.array(log_decay), x.detach().double().numpy()[0])[0]
        out, state = layer(x, h0)
        found = torch.autograd.grad(out.sum() + state.sum(), [x, *layer.parameters()])
        assert all(bar.isfinite().all() for bar in found)
        with torch.no_grad():
            layer.log_decay_l0.fill_(-1000)  # no decay: what is written, and what is left of the state
            kept, added = layer(x, h0)[1], layer(x, 0 * h0)[1]
        like(
            state[0, :, 0, 0],
            ((kept - added)[0, :, 0, 0].double().numpy() * np.exp(gate) + added[0, :, 0, 0].double().numpy()),
            BARS[dtype],
            "state",
        )


def test_transformers_that_is_not_installed(monkeypatch):
    """The package is looked for when it is asked for, not on import."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match="needs transformers, which is not installed: pip install transformers$"):
        register()
