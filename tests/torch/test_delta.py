"""The delta rule on tensors in every mode of torch: kernels, formula, derivatives, graphs, half precision."""

import numpy as np
import pytest
import torch
from torch.library import opcheck

import isometry.torch as it
import tolerance as tol
from derivatives import compiled
from isometry.torch.formulas import delta
from test_delta import CASES, NAMES, arguments


def tensors(given, grad=True):
    return {name: torch.from_numpy(x).requires_grad_(grad) for name, x in given.items()}


def called(given, **keywords):
    rest = dict(given)
    return it.delta_rule(*[rest.pop(name) for name in NAMES[:4]], **rest, **keywords)


def by_formula(given, householders=1, ends=None, normalise=False):
    given = [given.get(name) for name in NAMES]
    return delta.delta_rule(*given, ends, householders, given[0].shape[-1] ** -0.5, normalise)


def gradients(out, given, cts):
    return dict(zip(given, torch.autograd.grad(out, list(given.values()), cts), strict=True))


PACKED = torch.tensor([0, 3, 3, 70], dtype=torch.int32)


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize(
    ("sizes", "ends"), [*((sizes, None) for sizes in CASES), ((1, 70, 1, 1, 2, 6, 4, "head"), PACKED)], ids=str
)
def test_kernels_and_formula_agree(sizes, ends, normalise):
    given, m = tensors(arguments(sizes, state=ends is None)), sizes[2]
    if ends is not None:
        given["initial_state"] = torch.randn(3, 2, 6, 4, dtype=torch.float64, requires_grad=True)
    call = lambda: called(given, householders=m, normalise=normalise, cu_seqlens=ends)
    found, other = call(), by_formula(given, m, None if ends is None else ends.tolist(), normalise)
    cts = [torch.randn_like(x) for x in found]
    expected = gradients(other, given, cts)
    for name, bar in gradients(found, given, cts).items():
        tol.close(bar, expected[name], 1e-12, name)
    with torch.no_grad():
        for a, b, c in zip(found, other, call(), strict=True):
            tol.close(a, b, 1e-12)
            assert torch.equal(c, a)


@pytest.mark.long
def test_second_derivatives_and_forward_mode_of_gates_of_rows():
    given = tensors(arguments((1, 2, 2, 1, 2, 2, 2, "row")))
    call = lambda *args: called(dict(zip(given, args, strict=True)), householders=2, normalise=True)
    assert torch.autograd.gradcheck(call, list(given.values()), fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(call, list(given.values()), fast_mode=True)


def test_autocast_leaves_the_formula_as_it_is():
    given = tensors(arguments(CASES[0], np.float32), grad=False)
    call = lambda v: called(given | {"v": v}, normalise=True)
    expected = torch.func.jvp(call, (given["v"],), (given["v"],))
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.func.jvp(call, (given["v"],), (given["v"],))
    for pair, other in zip(found, expected, strict=True):
        for a, b in zip(pair, other, strict=True):
            assert torch.equal(a, b)


def test_the_ends_of_packed_sequences():
    """A column of a table; not one per member of a vmap, nor in another order."""
    given = tensors(arguments((1, 70, 1, 1, 2, 6, 4, "head"), state=False), grad=False)
    table = torch.tensor([[0, 5], [3, 5], [70, 5]])
    expected = called(given, cu_seqlens=[0, 3, 70])
    for a, b in zip(called(given, cu_seqlens=table[:, 0]), expected, strict=True):
        assert torch.equal(a, b)
    many = torch.tensor([[0, 3, 70], [0, 4, 70]])
    with pytest.raises(ValueError, match="cu_seqlens must be the same for all members"):
        torch.vmap(lambda ends: called(given, cu_seqlens=ends))(many)
    wrong = lambda v: called(given | {"v": v}, cu_seqlens=[0, 5, 2, 70])
    for call in (wrong, lambda v: torch.vmap(wrong)(v[None])):
        with pytest.raises(ValueError, match="cu_seqlens must ascend"):
            call(given["v"])


@pytest.mark.parametrize("sizes", [(1, 150, 1, 1, 2, 6, 5, None), (1, 150, 2, 1, 1, 6, 5, "head"), CASES[2]], ids=str)
def test_outputs_of_the_formula_do_not_depend_on_later_tokens(sizes):
    given, m = tensors(arguments(sizes), grad=False), sizes[2]
    found, _ = by_formula(given, m)
    for name in set(given) - {"initial_state"}:
        for token in (0, 40, 65):
            x = given[name].clone()
            x[:, token * (x.shape[1] // sizes[1])] = torch.nan
            o, _ = by_formula(given | {name: x}, m)
            assert torch.equal(o[:, :token], found[:, :token]), (name, token)
            assert o[:, token].isnan().any()


def test_the_formula_normalises_long_vectors():
    x = torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    for large in (x * 2.0**64, x.double() * 2.0**1000):
        expected = torch.tensor([[0.6, 0.8], [1, 0], [0, 0]], dtype=large.dtype)
        tol.close(delta.unit(large).detach(), expected, 1e-6)
    (bar,) = torch.autograd.grad(delta.unit(x * 2.0**64)[:2].sum(), x)
    other = x[:2] / x[:2].norm(dim=-1, keepdim=True)
    (expected,) = torch.autograd.grad(other.sum(), x)
    tol.close(bar, expected, 1e-5)


@pytest.mark.parametrize("decay", [0.05, 0.5])
def test_the_gradient_of_the_gate_is_as_close_to_double_precision_as_that_of_the_formula(decay):
    given = arguments((2, 150, 1, 4, 4, 32, 32, "head"), np.float32, state=False)
    rates = np.random.default_rng(3).uniform(0, 16, 4)
    given["g"] = (-rates * decay * given["g"] ** 2).astype(np.float32)
    leaves, wide = tensors(given), tensors({name: x.astype(float) for name, x in given.items()})
    ct = torch.randn(2, 150, 4, 32, generator=torch.Generator().manual_seed(0))
    (expected,) = torch.autograd.grad(by_formula(wide)[0], wide["g"], ct.double())
    distances = []
    for call in (called, by_formula):
        (bar,) = torch.autograd.grad(call(leaves)[0], leaves["g"], ct)
        distances.append((bar - expected).norm().item())
    assert distances[0] < 1.5 * distances[1]


def test_operators_of_a_graph():
    given = [*tensors(arguments(CASES[0], np.float32), grad=False).values(), None]
    forward = (1, 0.5, True, given, None, True)
    opcheck(torch.ops.isometry.delta_rule.default, forward)
    o, state, *saved = torch.ops.isometry.delta_rule(*forward)
    backward = (1, 0.5, True, given, saved, [o, state], [True, False, True, True, True, True, False])
    opcheck(torch.ops.isometry.delta_rule_backward.default, backward)


def test_half_precision_is_computed_in_float32():
    wide = tensors(arguments(CASES[0], np.float32), grad=False)
    for dtype in (torch.float16, torch.bfloat16):
        for names in ("q k v", "v", "k", "v beta", "g initial_state"):  # beside float32
            mixed = {name: t.to(dtype) if name in names.split() else t for name, t in wide.items()}
            o, state = called(mixed)
            expected, last = called({name: t.float() for name, t in mixed.items()})
            assert o.dtype is mixed["v"].dtype and torch.equal(o, expected.to(o.dtype)) and torch.equal(state, last)
            leaves = {name: t.clone().requires_grad_() for name, t in mixed.items()}
            called(leaves)[0].float().sum().backward()
            assert all(t.grad.dtype is t.dtype for t in leaves.values())
    for other in ({"v": wide["v"].double()}, {"beta": wide["beta"].double()}, {"g": wide["g"].long()}, {"q": None}):
        with pytest.raises(TypeError):
            called(wide | other)


@pytest.mark.parametrize("sizes", [CASES[0], CASES[1], (1, 1, 1, 2, 2, 16, 16, "head")], ids=str)
def test_the_last_states_are_written_to_a_tensor_of_the_caller(sizes):
    given = tensors(arguments(sizes, np.float32), grad=False)
    keywords = {"householders": sizes[2]}
    expected = called(given, **keywords)
    for out in (torch.empty_like(expected[1]), torch.empty_like(expected[1].mT).mT):
        o, state = called(given, **keywords, out_state=out)
        assert state is out and torch.equal(out, expected[1]) and torch.equal(o, expected[0])
    state, version = given["initial_state"], given["initial_state"]._version
    half = called(given | {name: given[name].half() for name in "qkv"}, **keywords)
    own = state.clone()
    o, last = called(
        given | {name: given[name].half() for name in "qkv"} | {"initial_state": own}, **keywords, out_state=own
    )
    assert last is own and torch.equal(own, half[1]) and torch.equal(o, half[0])
    o, last = called(given, **keywords, out_state=state)
    assert last is state and torch.equal(state, expected[1]) and torch.equal(o, expected[0])
    assert state._version > version


def test_states_for_the_caller_where_gradients_are_recorded():
    given = tensors(arguments(CASES[0], np.float32))
    expected, out = called(given), torch.empty_like(given["initial_state"], requires_grad=False)
    found = called(given, out_state=out)
    assert found[1] is out and torch.equal(out, expected[1])
    cts = [torch.randn_like(x) for x in expected]
    bars = gradients(expected, given, cts)
    for name, bar in gradients(found, given, cts).items():
        assert torch.equal(bar, bars[name]), name
    state = given["initial_state"].detach()
    with pytest.raises(RuntimeError, match="out_state must not be initial_state"):
        called(given | {"initial_state": state}, out_state=state)
    for other, error in [(state.double(), TypeError), (state[:1], ValueError), ([], TypeError)]:
        with pytest.raises(error, match="out_state"):
            called(given, out_state=other)
    free = {name: t.detach() for name, t in given.items()}
    found = compiled(lambda out: called(free, out_state=out))(torch.empty_like(state))
    assert torch.equal(found[1], called(free)[1])


def test_backward_keeps_the_arguments_and_a_state_for_64_rows():
    given = tensors(arguments((2, 320, 1, 2, 2, 8, 8, "head"), np.float32))
    kept = {}

    def pack(t):
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        _, state = called(given)
    inputs = sum(t.nbytes for t in given.values())
    assert inputs < sum(kept.values()) <= inputs + 320 // 64 * state.nbytes
