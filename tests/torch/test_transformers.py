"""transformers' models with delta rules: the same with and without our kernels and registrations, however run."""

import copy
import functools
import inspect
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from itertools import pairwise

import pytest
import torch

import isometry.torch.delta._fla_arguments as computing
import other_packages
import tolerance as tol
from derivatives import compiled
from isometry.integrations import transformers as integration
from transformers_models import MODELS, build, module, outputs, tokens

pytestmark = other_packages.MARKS

NAMES = pytest.mark.parametrize("name", MODELS)
CLOSE = 1e-5


def gradients(model, call=None, **given):
    """Logits, and the gradients of all parameters."""
    model.zero_grad()
    y = outputs(model, call, **given)
    y.square().sum().backward()
    return y.detach(), {key: p.grad for key, p in model.named_parameters() if p.grad is not None}


def agree(found, expected, bound=CLOSE):
    """Gradients through gates are differences of larger numbers: those far below the others are rounding."""
    (y, grads), (own, others) = expected, found
    assert own.dtype is y.dtype
    tol.close(own.double(), y.double(), bound, "logits")
    assert grads.keys() == others.keys()
    size = torch.stack([g.double().norm() for g in grads.values()]).norm().item()
    for key, gradient in grads.items():
        tol.close(others[key].double(), gradient.double(), bound, key, floor=tol.FLOOR * size)


@contextmanager
def registered(calls=None):
    """Within it our kernels compute; `calls` is how many rules are to be computed."""
    found = []
    with pytest.MonkeyPatch.context() as patch, integration.register():
        rule = computing.delta_rule
        patch.setattr(computing, "delta_rule", lambda *args, **more: found.append(1) or rule(*args, **more))
        yield
    assert calls is None or len(found) == calls


@pytest.mark.parametrize(("name", "padding"), [*((name, 0) for name in MODELS), ("qwen3_5", 9)])
def test_logits_and_gradients(name, padding):
    """Without and with padding on the left."""
    model, mask = build(name), torch.ones(2, 70, dtype=torch.int64)
    mask[1, :padding] = 0
    given = {"attention_mask": mask} if padding else {}
    expected = gradients(model, **given)
    with registered(model.config.layer_types.count("linear_attention")):
        agree(gradients(model, **given), expected)


@pytest.mark.parametrize("name", ["qwen3_5", "kimi_linear"])
def test_compiled(name):
    """In one graph."""
    model = build(name)
    expected = gradients(model)
    with integration.register(), torch.autograd.profiler.profile() as profile:
        agree(gradients(model, compiled(model)), expected)
    found = {event.key for event in profile.key_averages()}
    assert {"isometry::delta_rule", "isometry::delta_rule_backward"} < found


def test_graphs_of_before():
    """They are not used within a registration, and those of a registration not after it."""
    model = build("qwen3_5")
    expected, call = outputs(model), compiled(model)

    def kernels():
        with torch.no_grad(), torch.autograd.profiler.profile() as profile:
            tol.close(outputs(model, call), expected.detach(), CLOSE, "logits")
        return "isometry::delta_rule" in {event.key for event in profile.key_averages()}

    assert not kernels()
    with integration.register():
        assert kernels()
    assert not kernels()


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3_next", "olmo_hybrid", "kimi_linear"])
def test_generation(name):
    """50 tokens for each of two sequences, one of them padded: one call by chunks, then token by token."""
    model, ids = build(name), tokens(length=20)
    mask = torch.ones_like(ids)
    mask[1, :7] = 0
    given = {"attention_mask": mask, "max_new_tokens": 50, "min_new_tokens": 50, "do_sample": False}
    expected = model.generate(ids, **given)
    assert expected.shape == (2, 70) and len(expected[0, 20:].unique()) > 5
    with registered(50):
        assert torch.equal(model.generate(ids, **given), expected)


def test_gradient_checkpointing():
    model = build("qwen3_5").train()
    expected = gradients(model)
    model.gradient_checkpointing_enable()
    with registered(2):
        agree(gradients(model), expected)


@NAMES
def test_bfloat16(name):
    """Logits of the type of the model, as near to those in single precision as transformers' are."""
    model = build(name)
    exact, half = outputs(model), copy.deepcopy(model).bfloat16()
    with registered(model.config.layer_types.count("linear_attention")):
        found = outputs(half)
    assert found.dtype is torch.bfloat16
    theirs, ours = (tol.distance(y.detach().double(), exact.detach().double()) for y in (outputs(half), found))
    assert ours < 1.2 * theirs < 0.1


def test_double_precision():
    """transformers computes the rule in single precision: so near, and no nearer."""
    model = build("qwen3_5").double()
    expected = gradients(model)
    with registered(4):
        found = gradients(model)
        generated = model.generate(tokens(length=5), max_new_tokens=3, min_new_tokens=3)
    agree(found, expected)
    assert not torch.equal(found[0], expected[0]) and generated.shape == (2, 8)


ENDS = [0, 17, 17, 40, 41, 110]
PACKED = {
    "cu_seq_lens_q": {"cu_seq_lens_q": torch.tensor(ENDS, dtype=torch.int32)},
    "seq_idx": {"seq_idx": torch.arange(5, dtype=torch.int32).repeat_interleave(torch.tensor(ENDS).diff())[None]},
}
PACKED["both"] = PACKED["cu_seq_lens_q"] | PACKED["seq_idx"]


@pytest.mark.parametrize("how", PACKED)
@pytest.mark.parametrize("name", ["qwen3_5", "qwen3_next", "olmo_hybrid", "kimi_linear", "bailing_hybrid"])
def test_packed_sequences(name, how):
    """Each as if it were alone: rule, convolution, and attention by its positions."""
    model, ids = build(name), tokens(1, ENDS[-1])
    positions = torch.cat([torch.arange(b - a) for a, b in pairs()])[None]
    with registered(len(pairs()) + 1):
        alone = [gradients(model, input_ids=ids[:, a:b]) for a, b in pairs()]
        found = gradients(model, input_ids=ids, position_ids=positions, **PACKED[how])
    keys = alone[0][1].keys()
    agree(found, (torch.cat([y for y, _ in alone], 1), {key: sum(g[key] for _, g in alone) for key in keys}))


def pairs():
    return [(a, b) for a, b in pairwise(ENDS) if a < b]


def test_packed_sequences_in_a_graph():
    model, ids = build("qwen3_5"), tokens(1, ENDS[-1])
    given = {"input_ids": ids, "position_ids": torch.arange(ENDS[-1])[None], **PACKED["both"]}
    with integration.register():
        agree(gradients(model, compiled(model), **given), gradients(model, **given))


def test_packed_sequences_before_a_cache():
    """Tokens that a cache has kept stand before the first sequence, and are zeros for the convolution."""
    place, x, ends = module("qwen3_5"), torch.randn(1, 6, 9), torch.tensor([0, 3, 7])
    given = (torch.randn(6, 4), torch.ones(6), "silu")
    x[..., :2] = 0
    parts = [place.causal_conv1d_fn(part, *given) for part in (x[..., :5], x[..., 5:])]
    with integration.register(), torch.device("meta"):  # the default device, of other tensors
        found = place.causal_conv1d_fn(x, *given, cu_seq_lens_q=ends)
    tol.close(found, torch.cat(parts, -1), CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_packed_sequences_shorter_than_the_convolution(dtype):
    place, x, weight = module("qwen3_5"), torch.randn(1, 6, 3, dtype=dtype), torch.randn(6, 4, dtype=dtype)
    parts = [place.causal_conv1d_fn(part, weight) for part in (x[..., :2], x[..., 2:])]
    with integration.register():
        found = place.causal_conv1d_fn(x, weight, seq_idx=torch.tensor([[0, 0, 1]]))
        first = place.causal_conv1d_fn(x[..., :1], weight, cu_seq_lens_q=torch.tensor([0, 1]))
    assert found.dtype is dtype
    bound = CLOSE if dtype is torch.float32 else 5e-3
    tol.close(found.double(), torch.cat(parts, -1).double(), bound)
    tol.close(first.double(), parts[0][..., :1].double(), bound)


def test_infinity_stays_in_its_packed_sequence():
    place, x, weight = module("qwen3_5"), torch.randn(1, 6, 9), torch.randn(6, 4)
    expected = place.causal_conv1d_fn(x[..., 3:], weight)
    x[..., :3] = torch.inf
    with integration.register():
        found = place.causal_conv1d_fn(x, weight, cu_seq_lens_q=torch.tensor([0, 3, 9]))
    tol.close(found[..., 3:], expected, CLOSE)


def test_a_batch_of_packed_sequences():
    with integration.register(), pytest.raises(ValueError, match="seq_idx must have shape \\(1, T\\), not \\(2, 70\\)"):
        outputs(build("qwen3_5"), seq_idx=torch.zeros(2, 70, dtype=torch.int32))


def functions():
    """The functions that are replaced, where they stand now."""
    return [getattr(module(name), key) for name, keys in integration._MODELS.items() for key in keys]


def test_it_is_undone():
    """Nested registrations, those removed twice, and a block that an error ends."""
    before = functions()
    outer = integration.register()
    during = functions()
    assert len(before) == 24 and not any(a is b for a, b in zip(before, during, strict=True))
    with pytest.raises(KeyError), integration.register():
        assert functions() == during
        raise KeyError
    assert functions() == during
    inner = integration.register()
    outer.remove()
    outer.remove()
    assert functions() == during
    inner.remove()
    assert all(a is b for a, b in zip(before, functions(), strict=True))


def test_threads_that_register_at_once(monkeypatch):
    """One of them replaces the functions, and what it replaced is restored."""
    before, modules, entered = functions(), integration._modules, []

    def slowly():
        entered.append(1)
        time.sleep(0.1)
        return modules()

    monkeypatch.setattr(integration, "_modules", slowly)
    with ThreadPoolExecutor(2) as pool:
        registrations = [made.result() for made in [pool.submit(integration.register) for _ in range(2)]]
    for registration in registrations:
        registration.remove()
    assert len(entered) == 1
    assert all(a is b for a, b in zip(before, functions(), strict=True))


def test_what_another_package_has_replaced_stays(monkeypatch):
    name = "torch_chunk_gated_delta_rule"
    monkeypatch.setattr(module("qwen3_5"), name, getattr(module("qwen3_5"), name))  # put back at the end
    registration = integration.register()
    setattr(module("qwen3_5"), name, print)
    registration.remove()
    assert getattr(module("qwen3_5"), name) is print


def test_copies_and_saved_models(tmp_path):
    """Those of a registration serve without it."""
    model = build("qwen3_5")
    expected = outputs(model).detach()
    with integration.register():
        made = build("qwen3_5")
        others = [copy.deepcopy(made), pickle.loads(pickle.dumps(made))]
        made.save_pretrained(tmp_path)
    others.append(type(made).from_pretrained(tmp_path))
    for other in others:
        tol.close(outputs(other).detach(), expected, CLOSE)
    with integration.register():
        for other in others:
            tol.close(outputs(other).detach(), expected, CLOSE)


def given(name, device="cpu"):
    """Arguments of a rule: one gate per head, or one per row."""
    x = torch.rand(5, 1, 9, 2, 4, device=device)
    g = -x[3] if "kimi" in name else -x[3, ..., 0]
    return {"query": x[0], "key": x[1], "value": x[2], "g": g, "beta": x[4, ..., 0]}


@pytest.mark.parametrize("name", integration._RULES)
def test_arguments(name):
    """By position as by name; those that no rule takes are dropped, those that are not computed are refused."""
    place = module("kimi_linear" if "kimi" in name else "qwen3_5")
    own, more = given(name), {"initial_state": torch.rand(1, 2, 4, 4), "output_final_state": True}
    expected = getattr(place, name)(**own, **more, use_qk_l2norm_in_kernel=True)
    order = (*own.values(), *([64] if "chunk" in name else []), *more.values(), True)
    with integration.register():
        rule = getattr(place, name)
        for o, state in (rule(*order), rule(**own, **more, use_qk_l2norm_in_kernel=True, use_cache=False, other=1)):
            tol.close(o, expected[0], CLOSE)
            tol.close(state, expected[1], CLOSE)
        assert rule(**own, initial_state=None, output_final_state=False)[1] is None
        refused = "gv" if name == "torch_recurrent_gated_delta_rule" else "cp_context"
        if name != "recurrent_kimi_delta_attention":
            with pytest.raises(NotImplementedError, match=refused):
                rule(**own, initial_state=None, output_final_state=False, **{refused: 1})


@pytest.mark.parametrize("name", integration._RULES)
def test_other_devices_and_exports_take_the_functions_of_transformers(name, monkeypatch):
    place, calls = module("kimi_linear" if "kimi" in name else "qwen3_5"), []
    more = {"initial_state": None, "output_final_state": True}
    monkeypatch.setattr(place, name, record(getattr(place, name), calls))
    with integration.register():
        rule = getattr(place, name)
        assert rule(**given(name, "meta"), **more)[0].device.type == "meta" and len(calls) == 1
        monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
        assert rule(**given(name), **more)[0].shape == (1, 9, 2, 4) and len(calls) == 2


def test_functions_that_the_package_kernels_has_made_modules(monkeypatch):
    name, place, calls = "torch_chunk_gated_delta_rule", module("qwen3_5"), []
    function = getattr(place, name)

    class Func(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return record(function, calls)(*args, **kwargs)

    own = inspect.signature(function)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    Func.forward.__signature__ = own.replace(parameters=[first, *own.parameters.values()])
    monkeypatch.setattr(place, name, Func())
    with integration.register():
        getattr(place, name)(**given(name))
        assert not calls
        getattr(place, name)(**given(name, "meta"))
    assert len(calls) == 1


def record(function, calls):
    """The function, with a note of each of its calls; of the same signature."""

    @functools.wraps(function)
    def noted(*args, **kwargs):
        calls.append(1)
        return function(*args, **kwargs)

    return noted


def test_a_version_that_is_not_known(monkeypatch):
    """Functions that take something else, that are missing, or whose models are; then nothing is replaced."""
    before, kimi = functions(), module("kimi_linear")
    for change, said in (
        (("setattr", kimi, "chunk_kimi_delta_attention", lambda query, key: (query, key)),
         ".*chunk_kimi_delta_attention of .* takes \\(query, key\\)"),
        (("setattr", kimi, "causal_conv1d_fn", None), ".*modeling_kimi_linear has no causal_conv1d_fn"),
        (("delattr", kimi, "ACT2FN"), ".*modeling_kimi_linear has no ACT2FN"),
        (("setattr", integration, "_MODELS", {"qwen0": ("torch_chunk_gated_delta_rule",)}),
         "it has none of the models qwen0; isometry serves 5.15"),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            getattr(patch, change[0])(*change[1:])
            with pytest.raises(RuntimeError, match=f"transformers {version('transformers')} is not known: {said}"):
                integration.register()
        assert functions() == before
