"""The delta rule on NumPy arrays: values, gradients, packed sequences, threads, structure, refusals."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import tolerance as tol
from isometry import _core
from reference import delta as ref
from support import structure

#         B  T   m  H HV K  V  gate
CASES = [
    (2, 5, 1, 1, 2, 4, 3, "head"),
    (1, 70, 2, 2, 2, 7, 5, None),
    (1, 66, 1, 2, 4, 6, 9, "row"),
    (2, 64, 1, 1, 1, 8, 8, "head"),
]
NAMES = ("q", "k", "v", "beta", "g", "initial_state")


def arguments(sizes, dtype=np.float64, seed=0, state=True):
    b, t, m, h, hv, key, value, gate = sizes
    rng = np.random.default_rng(seed)
    given = {"q": rng.standard_normal((b, t, h, key)), "k": rng.standard_normal((b, t * m, h, key))}
    given["k"] /= np.linalg.norm(given["k"], axis=-1, keepdims=True)
    given["v"], given["beta"] = rng.standard_normal((b, t * m, hv, value)), rng.uniform(0, 2, (b, t * m, hv))
    if gate:
        given["g"] = -rng.uniform(0, 2, (b, t, hv, key) if gate == "row" else (b, t, hv))
    if state:
        given["initial_state"] = rng.standard_normal((b, hv, key, value))
    return {name: x.astype(dtype) for name, x in given.items()}


def called(given, function=iso.delta_rule, *cts, **keywords):
    rest = dict(given)
    return function(*[rest.pop(name) for name in NAMES[:4]], *cts, **rest, **keywords)


def test_packed_sequences_and_threads_change_no_bit():
    ends, given = [0, 3, 3, 70, 90], arguments((1, 90, 2, 1, 2, 6, 4, "head"), np.float32, state=False)
    states = np.random.default_rng(2).standard_normal((4, 2, 6, 4)).astype(np.float32)
    keywords = {"householders": 2, "initial_state": states, "cu_seqlens": ends}
    o, last = called(given, **keywords)
    cts = (np.ones_like(o), np.ones_like(last))
    grads = called(given, iso.delta_rule_vjp, *cts, **keywords)
    before = iso.get_num_threads()
    try:
        iso.set_num_threads(1)
        alone = called(given, **keywords), called(given, iso.delta_rule_vjp, *cts, **keywords)
    finally:
        iso.set_num_threads(before)
    assert np.array_equal(alone[0][0], o) and all(np.array_equal(alone[1][n], x) for n, x in grads.items())
    for n, (first, end) in enumerate(pairwise(ends)):
        part = {name: x[:, first * (x.shape[1] // 90) : end * (x.shape[1] // 90)] for name, x in given.items()}
        own = called(part, householders=2, initial_state=states[n : n + 1])
        assert np.array_equal(own[0], o[:, first:end]) and np.array_equal(own[1][0], last[n])


@pytest.mark.parametrize("sizes", [(1, 150, 1, 1, 2, 6, 5, None), (1, 150, 2, 1, 1, 6, 5, "head"), CASES[2]], ids=str)
def test_outputs_do_not_depend_on_later_tokens(sizes):
    """Where these are NaN or infinite, or overflow in their products."""
    given, m = arguments(sizes, np.float32), sizes[2]
    found, _ = called(given, householders=m)
    for name in set(given) - {"initial_state"}:
        for token in (0, 1, 40, 63, 64, 65):
            for value in (np.nan, np.inf, 1e30):
                x = given[name].copy()
                x[:, token * (x.shape[1] // sizes[1])] = value
                with np.errstate(all="ignore"):
                    o, _ = called(given | {name: x}, householders=m, check_finite=False)
                assert np.array_equal(o[:, :token], found[:, :token]), (name, token, value)
                assert not np.isfinite(o[:, token:]).all() or name == "q" or value == 1e30


@pytest.mark.parametrize("tokens", [1, 20])
@pytest.mark.parametrize("g", [87.5, 88.7])
def test_rates_that_grow_up_to_the_largest_number(tokens, g):
    given = arguments((1, tokens, 1, 1, 1, 4, 3, "head"), np.float32)
    given["g"][:], given["beta"][:] = 0, 0
    given["g"][:, 0] = g
    _, state = called(given | {"initial_state": given["initial_state"] / 8})
    expected = given["initial_state"] / 8 * np.exp(np.float64(np.float32(g)))
    assert np.abs(state / expected - 1).max() < 1e-6


@pytest.mark.parametrize("tokens", [3, 70])
def test_long_keys_are_normalised(tokens):
    given = arguments((1, tokens, 1, 1, 1, 4, 3, None), np.float32)
    cts = given["v"], given["initial_state"]
    expected = called(given, normalise=True), called(given, iso.delta_rule_vjp, *cts, normalise=True)
    size = np.float32(2.0**64)  # its square overflows
    large = given | {"q": given["q"] * size, "k": given["k"] * size}
    found = called(large, normalise=True), called(large, iso.delta_rule_vjp, *cts, normalise=True)
    for a, b in zip(found[0], expected[0], strict=True):
        tol.close(a, b, 1e-5)
    for name in ("q", "k"):
        tol.close(found[1][name] * size, expected[1][name], 1e-4, name)


@pytest.mark.parametrize("gate", ["head", "row"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gates_that_forget_everything(gate, dtype):
    given = arguments((1, 130, 1, 1, 1, 4, 3, gate), dtype)
    worse = given | {"g": np.where(given["g"] < -1, -np.inf, given["g"])}
    found = called(worse, check_finite=False)
    grads = called(worse, iso.delta_rule_vjp, *map(np.ones_like, found), check_finite=False)
    limit = given | {"g": np.where(given["g"] < -1, dtype(-1000), given["g"])}
    for a, b in zip(found, called(limit), strict=True):
        assert np.array_equal(a, b)
    assert all(np.isfinite(x).all() for x in grads.values())
    assert not grads["g"][np.isinf(worse["g"])].any()
    with pytest.raises(ValueError, match="g "):
        called(worse)


@pytest.mark.parametrize("sizes", [*CASES, (1, 1, 1, 1, 2, 7, 5, "head"), (1, 200, 1, 1, 1, 8, 40, "head")], ids=str)
def test_the_last_states_are_written_to_an_array_of_the_caller(sizes):
    given = arguments(sizes, np.float32)
    m, kept = sizes[2], {name: x.copy() for name, x in given.items()}
    expected = called(given, householders=m)
    out = np.full_like(expected[1], np.nan)
    o, state = called(given, householders=m, out_state=out)
    assert state is out and np.array_equal(out, expected[1]) and np.array_equal(o, expected[0])
    assert all(np.array_equal(given[name], kept[name]) for name in given)
    o, state = called(given, householders=m, out_state=given["initial_state"])
    assert state is given["initial_state"] and np.array_equal(state, expected[1]) and np.array_equal(o, expected[0])


def test_arrays_for_the_last_states_that_do_not_fit_are_refused():
    given = arguments(CASES[0])
    state = given["initial_state"]
    read_only = state.copy()
    read_only.flags.writeable = False
    for out, error, pattern in [
        (state.tolist(), TypeError, "out_state must be a numpy.ndarray"),
        (state[:1], ValueError, "out_state must have shape"),
        (state.astype(np.float32), TypeError, "out_state must have the dtype of the result, float64"),
        (read_only, ValueError, "out_state must be contiguous"),
        (np.asfortranarray(state), ValueError, "out_state must be contiguous"),
    ]:
        with pytest.raises(error, match=pattern):
            called(given, out_state=out)
    room = np.zeros(state.size + 4)
    room[4:] = state.ravel()
    with pytest.raises(ValueError, match="out_state must not share memory with initial_state"):
        called(given | {"initial_state": room[4:].reshape(state.shape)}, out_state=room[:-4].reshape(state.shape))


@pytest.mark.parametrize("at", [4, 5])
def test_the_extension_refuses_the_gradient_of_what_is_not_given(at):
    given = arguments((1, 9, 1, 1, 1, 4, 4, None), np.float32, state=False)
    call = (*given.values(), None, None), None, 1, 1.0, False
    bars = [None] * 6
    bars[at] = np.empty(0, np.float32)
    cts = np.zeros((1, 9, 1, 4), np.float32), np.zeros((1, 1, 4, 4), np.float32)
    saved = np.empty((1, 0, 1, 4, 4), np.float32)
    with pytest.raises(ValueError, match=f"{NAMES[at]}_bar"):
        _core.delta_rule_vjp(call, saved, cts, tuple(bars), 1)


#: Gates that keep all, nothing, and what is between; e of some of them is no normal number.
GATES = (0.0, -1e-3, -1.0, -50.0, -88.0, -200.0, -900.0, -1e5, -np.inf)
#: Tokens on both sides of rows one by one, a chunk of wide gates, a chunk, and a segment; three chunks.
TOKENS = (1, 8, 9, 16, 17, 64, 65, 130)
#: Arrays of moderate size, whose errors are those of numbers of order 1.
MODERATE = [name for name in structure.CLASSES if name not in ("huge_column", "huge_entry", "vandermonde")]


def drawn(name, rng, tokens, heads, size):
    """(1, T, h, .): a matrix of tokens for every head."""
    return structure.draw(name, rng, (1, heads, tokens, size), np.float64).swapaxes(1, 2)


def problem(name, rng, tokens, gate):
    m, h, hv, key, value = int(rng.integers(1, 4)), 1, int(rng.integers(1, 3)), int(rng.integers(1, 9)), 3
    other = lambda: str(rng.choice(MODERATE))
    k = drawn(name, rng, tokens * m, h, key)
    k /= np.maximum(np.linalg.norm(k, axis=-1, keepdims=True), 1)  # a rate of 2 reflects unit keys
    given = {"q": drawn(other(), rng, tokens, h, key), "k": k, "v": drawn(other(), rng, tokens * m, hv, value)}
    given["beta"] = rng.choice([0.0, 0.5, 1.0, 2.0], (1, tokens * m, hv))
    if gate:
        given["g"] = rng.choice(GATES, (1, tokens, hv, key) if gate == "row" else (1, tokens, hv))
    given["initial_state"] = structure.draw(other(), rng, (1, hv, key, value), np.float64)
    size = max(1.0, *(np.abs(given[key]).max() for key in ("q", "v", "initial_state")))
    return {key: x / size if key in ("q", "v", "initial_state") else x for key, x in given.items()}, m


@pytest.mark.parametrize("gate", [None, "head", "row"])
@pytest.mark.parametrize("name", structure.CLASSES)
def test_values_and_gradients_of_structured_keys(name, gate):
    """Every class of keys at two or three lengths, normalised or not, in both precisions; other classes beside it."""
    for number, tokens in list(enumerate(TOKENS))[(list(structure.CLASSES).index(name) + len(gate or "")) % 3 :: 3]:
        rng = np.random.default_rng(number)
        for dtype, normalise in ((np.float64, False), (np.float32, bool(number % 2))):
            given, m = problem(name, rng, tokens, gate)
            given = {key: x.astype(dtype) for key, x in given.items()}
            keywords = {"householders": m, "scale": 0.5, "normalise": normalise}
            leaves = {key: torch.from_numpy(x.copy()).requires_grad_() for key, x in given.items()}
            rest = dict(leaves)
            out = it.delta_rule(*[rest.pop(key) for key in NAMES[:4]], **rest, **keywords)
            cts = [rng.standard_normal(t.shape) for t in out]
            bars = torch.autograd.grad(out, list(leaves.values()), [torch.from_numpy(ct.astype(dtype)) for ct in cts])
            wide = given | ({"g": np.maximum(given["g"], -1e4)} if gate else {})
            expected = ref.delta_rule(**wide, **keywords)
            others = dict(
                zip(NAMES, ref.delta_rule_vjp(**wide, o_bar=cts[0], state_bar=cts[1], **keywords), strict=True)
            )
            # values, states and cotangents are sums over tokens and pairs of terms of order one
            bound = 1e3 * tokens * m * np.finfo(dtype).eps
            # derivatives of unit vectors
            steep = 1e3 if normalise else 1
            for key, one, other in [
                *zip(("o", "state"), [t.detach() for t in out], expected, strict=True),
                *((key, bar, others[key]) for key, bar in zip(leaves, bars, strict=True)),
            ]:
                gap = np.abs(one.double().numpy() - other).max()
                limit = bound * tokens * max(1, np.abs(other).max()) * (steep if key in ("q", "k") else 1)
                assert gap <= limit, f"{name} {key}, {tokens} tokens, {m} rows: {gap:.1e} > {limit:.1e}"
