"""`register` itself: what it replaces, how that ends, which calls it takes, and versions that it does not know."""

import copy
import functools
import inspect
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import pytest
import torch

import tolerance as tol
from isometry.integrations import transformers as integration
from transformers_models import build, module, outputs

pytestmark = [
    pytest.mark.extra,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]
CLOSE = 1e-5


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
