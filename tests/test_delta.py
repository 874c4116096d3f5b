"""The delta rule on NumPy arrays: values, gradients, packed sequences, threads, refusals."""

from itertools import pairwise

import numpy as np
import pytest

import isometry as iso
import tolerance as tol
from reference import delta as ref

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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("sizes", CASES, ids=str)
def test_values_and_gradients(sizes, normalise, dtype):
    given, keywords = arguments(sizes, dtype), {"householders": sizes[2], "scale": 0.4, "normalise": normalise}
    rng = np.random.default_rng(1)
    found = called(given, **keywords)
    expected = ref.delta_rule(**given, **keywords)
    cts = [rng.standard_normal(x.shape).astype(dtype) for x in expected]
    for name, a, b in zip(("o", "state"), found, expected, strict=True):
        assert a.dtype == dtype
        tol.close(a, b, tol.sequence(dtype, 1, sizes[1] * sizes[2]), name)
    grads = called(given, iso.delta_rule_vjp, *cts, **keywords)
    others = called(given, ref.delta_rule_vjp, *cts, **keywords)
    for name, expected in zip(NAMES, others, strict=True):
        assert (grads[name] is None) == (name not in given)
        if name in given:
            assert grads[name].dtype == dtype
            tol.close(grads[name], expected, tol.sequence_gradient(dtype, 1, sizes[1] * sizes[2]), name)


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


def test_arrays_in_other_layouts_have_the_same_bits():
    given = arguments(CASES[0], np.float32)
    other = {name: np.asfortranarray(x) for name, x in given.items()}
    for a, b in zip(called(given), called(other), strict=True):
        assert np.array_equal(a, b)


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


def test_what_is_refused():
    given = arguments(CASES[0])
    for spoil, error, pattern in [
        ({"k": given["k"] + 1j}, TypeError, "k must be real"),
        ({"householders": 0}, ValueError, "householders must be at least 1"),
        ({"householders": 1.5}, TypeError, "householders must be an integer"),
        ({"cu_seqlens": [0, 5]}, ValueError, "cu_seqlens needs a batch of 1"),
        ({"cu_seqlens": [[0, 5]]}, ValueError, "cu_seqlens must have shape"),
        ({"cu_seqlens": [0.0, 5.0]}, TypeError, "cu_seqlens must be integers"),
        ({"normalise": 1}, TypeError, "normalise must be a bool"),
        ({"v": given["v"][..., :0]}, ValueError, "v must not have a size of 0"),
        ({"g": given["g"][..., None]}, ValueError, "g must have shape"),
        ({"q": given["q"][0]}, ValueError, "q must have shape"),
    ]:
        with pytest.raises(error, match=pattern):
            called(given | spoil)
    with pytest.raises(NotImplementedError, match="gpu"):
        called(given, backend="gpu")
    o, state = called(given)
    with pytest.raises(ValueError, match="o_bar"):
        called(given, iso.delta_rule_vjp, o[:, 1:], state)
