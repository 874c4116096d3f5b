"""flash-linear-attention's names: signatures, what every argument means, and refusals, against the token loop."""

import inspect
import sys

import pytest
import torch

import isometry.torch as it
import tolerance as tol
from derivatives import compiled
from isometry.integrations.transformers import register
from reference import delta as ref
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
def test_by_position(name):
    given = problem(name)
    required, optional = (part.split() for part in SIGNATURES[name].split(":"))
    order = [*required, *optional]
    last = max(i for i, key in enumerate(order) if key in given)
    values = [given.get(key, False if key.startswith(FLAGS) else None) for key in order[: last + 1]]
    assert torch.equal(getattr(it.fla, name)(*values)[0], called(name, given)[0])


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


@NAMES
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_queries_and_keys_in_float32_beside_half_precision(name, dtype):
    """As in the library's tests of its recurrent functions; the gradients have the dtypes of the arguments."""
    given = problem(name, torch.float32)
    given |= {key: given[key].to(dtype).requires_grad_() for key in ("v", "beta")}
    given["q"].requires_grad_()
    o, state = called(name, given, scale=0.3, use_qk_l2norm_in_kernel=True)
    assert o.dtype is dtype and state.dtype is torch.float32
    plain = {key: x.detach() if isinstance(x, torch.Tensor) else x for key, x in given.items()}
    expected, last = loop(plain, scale=0.3, normalise=True)
    agree([o.detach()], [expected], torch.finfo(dtype).eps)
    agree([state.detach()], [last], 1e-5)
    (o.float().sum() + state.sum()).backward()
    assert [given[key].grad.dtype for key in ("q", "v", "beta")] == [torch.float32, dtype, dtype]


@HEADS
@pytest.mark.parametrize("negative", [False, True])
def test_sigmoid_of_the_rates(name, negative):
    given = problem(name)
    rates = given["beta"].sigmoid() * (2 if negative else 1)
    found = called(name, given, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=negative)
    agree(found, loop(given, beta=rates))


@HEADS
@pytest.mark.parametrize("bias", [False, True])
def test_gates_from_their_inputs(name, bias):
    given = problem(name)
    given["g"][0, :3] *= 100  # softplus of large numbers of either sign
    shape = given["g"].shape[2:]
    a_log, dt_bias = torch.randn(4, dtype=torch.float64), torch.randn(shape, dtype=torch.float64) if bias else None
    x = given["g"] if dt_bias is None else given["g"] + dt_bias
    factor = a_log.exp().reshape(4, *[1] * (len(shape) - 1))
    keywords = {"use_gate_in_kernel": True, "A_log": a_log.reshape(1, 1, 4, 1)}
    keywords["dt_bias"] = None if dt_bias is None else dt_bias.flatten()
    found = called(name, given, **keywords)
    agree(found, loop(given, g=-factor * softplus(x)))
    assert torch.equal(called(name, given, **keywords | {"use_gate_in_kernel": False})[0], called(name, given)[0])
    if name in KDA:
        agree(called(name, given, lower_bound=-5.0, **keywords), loop(given, g=-5 * (factor * x).sigmoid()))
        plain = keywords | {"A_log": None}
        agree(called(name, given, lower_bound=-4.0, **plain), loop(given, g=-4 * x.sigmoid()))


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


@pytest.mark.parametrize(
    "name, keywords, said",
    [
        ("chunk_delta_rule", {"head_first": True}, "head_first"),
        ("chunk_gated_delta_rule", {"head_first": True}, "head_first"),
        ("chunk_gated_delta_rule", {"cp_context": object()}, "cp_context"),
        ("fused_recurrent_gated_delta_rule", {"gv": torch.zeros(2, 20, 4, 3)}, "gv"),
        ("chunk_kda", {"cp_context": object()}, "cp_context"),
        ("chunk_kda", {"return_intermediate_states": True}, "return_intermediate_states"),
        *((name, {"beta": torch.ones(2, 20, 4, 3).double()}, "beta") for name in SIGNATURES if "product" not in name),
    ],
)
def test_what_is_not_computed_is_named(name, keywords, said):
    with pytest.raises(NotImplementedError, match=f"^{said} "):
        called(name, problem(name), **keywords)


@HEADS
def test_mistakes(name):
    given = problem(name)
    for keywords, said in (
        ({"allow_neg_eigval": True}, "allow_neg_eigval needs use_beta_sigmoid_in_kernel"),
        ({"use_gate_in_kernel": True, "A_log": torch.zeros(3)}, "A_log must have 4 elements"),
        ({"use_gate_in_kernel": True, "A_log": torch.zeros(4), "dt_bias": torch.zeros(3)}, "dt_bias must have"),
        ({"g": given["g"].unsqueeze(-1)}, "g must have shape"),
        ({"state_v_first": True, "initial_state": torch.zeros(3).double()}, "initial_state must have shape"),
    ):
        with pytest.raises(ValueError, match=f"^{said}"):
            called(name, given, **keywords)
    for keywords, said in (
        ({"use_gate_in_kernel": True}, "A_log must be a torch.Tensor"),
        ({"use_qk_l2norm_in_kernel": 1}, "use_qk_l2norm_in_kernel must be a bool"),
        ({"state_v_first": "no"}, "state_v_first must be a bool"),
        ({"output_final_state": None}, "output_final_state must be a bool"),
        ({"beta": [1.0]}, "beta must be a torch.Tensor"),
        ({"beta": given["beta"].long(), "use_beta_sigmoid_in_kernel": True}, "beta must be float32"),
        ({"own": 1}, ".* unexpected keyword argument"),
    ):
        with pytest.raises(TypeError, match=f"^{said}"):
            called(name, given, **keywords)


def test_mistakes_of_single_functions():
    given = problem("chunk_kda")
    for lower in (None, 0.0, -5.5):
        with pytest.raises(ValueError, match="^safe_gate"):
            own = {"safe_gate": True, "use_gate_in_kernel": True, "A_log": torch.zeros(4)}
            called("chunk_kda", given, lower_bound=lower, **own)
    for name, size in (("chunk_kda", 16), ("chunk_delta_rule", 128), ("chunk_gated_delta_rule", 24)):
        with pytest.raises(ValueError, match=f"^chunk_size must be .*32 or 64, not {size}$"):
            called(name, problem(name), chunk_size=size)
    with pytest.raises(ValueError, match="^num_householder must be at least 1"):
        called("chunk_gated_delta_product", problem("chunk_gated_delta_product"), num_householder=0)
    for name in GATED:
        with pytest.raises(ValueError, match="^use_gate_in_kernel needs g"):
            called(name, problem(name), g=None, use_gate_in_kernel=True, A_log=torch.zeros(4))
    with pytest.raises(TypeError, match="^v must be a torch.Tensor"):
        it.fla.fused_recurrent_delta_rule(given["q"], given["k"], None)


def test_transformers_that_is_not_installed(monkeypatch):
    """The package is looked for when it is asked for, not on import."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match="needs transformers, which is not installed: pip install"):
        register()
