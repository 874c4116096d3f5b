"""The delta rule on the GPU: the definition token by token in double precision, and what a call asks of the device."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.func import vmap

import isometry as iso
import isometry.torch as it
import tolerance as tol
from derivatives import compiled
from gpu_tensors import same
from reference import delta as ref
from test_delta import NAMES, arguments, called

#: B, T, m, H, HV, K, V, gate: on both sides of a chunk of 64 rows, of 32 with a gate for each row of the state, of one
#: token with more rows than that, and of a tile of 16.
CASES = [
    (1, 1, 1, 1, 1, 4, 4, None),
    (2, 63, 1, 1, 2, 16, 17, None),
    (1, 64, 1, 2, 4, 15, 8, "head"),
    (1, 65, 1, 1, 1, 40, 33, "head"),
    (3, 150, 1, 1, 2, 64, 64, None),
    (1, 33, 2, 1, 2, 7, 9, "head"),
    (1, 3, 70, 1, 1, 8, 5, "head"),
    (1, 31, 1, 1, 1, 8, 5, "row"),
    (2, 66, 1, 2, 4, 20, 9, "row"),
    (1, 40, 3, 1, 1, 12, 16, "row"),
]


def drawn(sizes, state=True):
    """Some rates, keys and gates are 0, some gates forget nearly all."""
    given = arguments(sizes, np.float32, state=state)
    given["beta"][:, 3::7] = 0
    given["k"][:, 4::5] = 0
    if "g" in given:
        given["g"][:, 2::9], given["g"][:, 4::9] = 0, -60
    return given


def cotangents(sizes, count):
    b, t, _, _, heads, key, value, _ = sizes
    rng = np.random.default_rng(1)
    shapes = (b, t, heads, value), (count, heads, key, value)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def results(given, cts, **keywords):
    """Outputs, states and the gradients by name."""
    o, state = called(given, **keywords)
    return {"o": o, "state": state, **called(given, iso.delta_rule_vjp, *cts, **keywords)}


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("sizes", CASES, ids=str)
def test_values_and_gradients_are_those_of_the_definition(sizes, normalise):
    given, cts = drawn(sizes, state=normalise), cotangents(sizes, sizes[0])
    keywords = {"householders": sizes[2], "scale": 0.4, "normalise": normalise}
    found = results(given, cts, backend="gpu", **keywords)
    o, state = ref.delta_rule(**given, **keywords)
    bars = called(given, ref.delta_rule_vjp, *cts, **keywords)
    expected = {"o": o, "state": state, **dict(zip(NAMES, bars, strict=True))}
    for name, x in found.items():
        assert (x is None) == (name not in given and name in NAMES)
        if x is not None:
            assert x.dtype == np.float32
            tol.close(x, expected[name], 2e-5 if name == "g" else 1e-5, name)


def test_packed_sequences_have_the_bits_of_separate_ones():
    """Some of them empty; the last states of these are the first."""
    ends, m, sizes = [0, 0, 3, 3, 70, 90, 90], 2, (1, 90, 2, 1, 2, 6, 4, "head")
    given, cts = drawn(sizes, state=False), cotangents(sizes, 6)
    states = np.random.default_rng(2).standard_normal((6, 2, 6, 4)).astype(np.float32)
    found = results(given | {"initial_state": states}, cts, householders=m, cu_seqlens=ends, backend="gpu")
    for n, (first, end) in enumerate(pairwise(ends)):
        cut = lambda x, first=first, end=end: x[:, first * (x.shape[1] // 90) : end * (x.shape[1] // 90)]
        part = {name: cut(x) for name, x in given.items()} | {"initial_state": states[n : n + 1]}
        own = results(part, (cut(cts[0]), cts[1][n : n + 1]), householders=m, backend="gpu")
        for name, x in own.items():
            expected = found[name][n : n + 1] if name in ("state", "initial_state") else cut(found[name])
            assert np.array_equal(x, expected), (n, name)


@pytest.mark.parametrize("sizes", [(2, 0, 1, 1, 2, 3, 4, "head"), (0, 5, 1, 1, 1, 3, 4, "row")], ids=str)
def test_nothing_is_computed_of_no_tokens(sizes):
    given, cts = arguments(sizes, np.float32), cotangents(sizes, sizes[0])
    found = results(given, cts, backend="gpu")
    assert np.array_equal(found["state"], given["initial_state"])
    assert np.array_equal(found["initial_state"], cts[1]) and found["q"].shape == given["q"].shape


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gate", ["head", "row"])
def test_nan_stays(name, gate):
    """In the head that reads it, from its chunk on."""
    sizes = (1, 150, 1, 2, 2, 6, 5, gate)
    given = arguments(sizes, np.float32)
    given[name].reshape(given[name].shape[1], -1)[-1 if name == "initial_state" else 70, -1] = np.nan
    with np.errstate(all="ignore"):
        found, expected = (called(given, backend=backend, check_finite=False)[0] for backend in ("gpu", "cpu"))
    assert np.isnan(expected).any() and np.isnan(found)[np.isnan(expected)].all()
    assert np.isfinite(found[:, :, 0]).all() and (name == "initial_state" or np.isfinite(found[:, :32]).all())


def test_states_continue_in_place():
    given = drawn((1, 70, 1, 1, 2, 6, 5, "head"))
    o, state = called(given, backend="gpu")
    first = given["initial_state"]
    again, last = called(given, out_state=first, backend="gpu")
    assert last is first and np.array_equal(o, again) and np.array_equal(first, state)
    of_torch = {name: torch.from_numpy(x) for name, x in drawn((1, 70, 1, 1, 2, 6, 5, "head")).items()}
    rest = dict(of_torch)
    q, k, v, beta = (rest.pop(name) for name in NAMES[:4])
    again, last = it.delta_rule(q, k, v, beta, **rest, out_state=rest["initial_state"], backend="gpu")
    assert last is rest["initial_state"] and np.array_equal(last.numpy(), state) and np.array_equal(again.numpy(), o)


@pytest.mark.parametrize("there", [NAMES, ("v",), ("initial_state", "state_bar"), ("o_bar",)], ids=str)
def test_arrays_on_the_gpu_stay_there(there):
    """All or some of them, the others being NumPy arrays or None; the bits are those of a call that copies."""
    held = lambda name, x: iso.gpu.Array(x) if x is not None and (name in there or there is NAMES) else x
    sizes, ends = (1, 70, 2, 1, 2, 6, 5, "head"), [0, 30, 70]
    given, cts = drawn(sizes, state=False), cotangents(sizes, 2)
    given["initial_state"] = np.ones((2, 2, 6, 5), np.float32)
    keywords = {"householders": 2, "cu_seqlens": ends, "backend": "gpu"}
    expected = results(given, cts, **keywords)
    given = {name: held(name, x) for name, x in given.items()}
    cts = [held(name, x) for name, x in zip(("o_bar", "state_bar"), cts, strict=True)]
    found = called(given, iso.delta_rule_vjp, *cts, **keywords)
    if any(type(x) is iso.gpu.Array for x in given.values()):
        found["o"], found["state"] = called(given, **keywords)
    for name, x in found.items():
        assert type(x) is iso.gpu.Array and x.shape == expected[name].shape, name
        assert np.array_equal(x.download(), expected[name]), name


def test_nothing_is_copied_or_awaited_between_calls():
    given = {name: iso.gpu.Array(x) for name, x in drawn((1, 70, 1, 1, 2, 6, 5, "head")).items()}
    before = iso.gpu.statistics()
    _, given["initial_state"] = called(given, backend="gpu")
    called(given, backend="gpu")
    spent = {name: count - before[name] for name, count in iso.gpu.statistics().items()}
    assert spent["dispatches"] and not spent["downloaded"] and not spent["waits"]
    assert spent["uploaded"] < 100  # the tables of the chunks


def test_what_arrays_on_the_gpu_cannot_be():
    given = drawn((1, 7, 1, 1, 2, 6, 5, None))
    on_gpu, state = given | {"v": iso.gpu.Array(given["v"])}, given["initial_state"]
    for error, match, call in (
        (TypeError, "memory of the GPU", lambda: called(on_gpu)),
        (TypeError, "memory of the GPU", lambda: called(on_gpu, iso.delta_rule_vjp, given["v"], state)),
        (TypeError, "memory of the GPU", lambda: called(on_gpu, out_state=state)),
        (TypeError, "memory of the GPU", lambda: called(on_gpu | {"q": given["q"].astype(float)}, backend="cpu")),
        (TypeError, "out_state", lambda: called(on_gpu, out_state=state, backend="gpu")),
        (TypeError, "float64", lambda: called(on_gpu | {"q": given["q"].astype(float)}, backend="gpu")),
        (TypeError, "v must be real", lambda: called(on_gpu | {"v": iso.gpu.Array(1j * given["v"])}, backend="gpu")),
        (ValueError, "v must have shape", lambda: called(on_gpu | {"v": on_gpu["v"].reshape(1, 7, 10)}, backend="gpu")),
    ):
        with pytest.raises(error, match=match):
            call()


def dispatches(call):
    before = iso.gpu.statistics()["dispatches"]
    call()
    return iso.gpu.statistics()["dispatches"] - before


@pytest.mark.parametrize("gate", [None, "head", "row"])
def test_dispatches_do_not_grow(gate):
    """With tokens, sequences or heads."""
    counts = set()
    for batch, tokens, heads in ((1, 70, 1), (4, 70, 1), (1, 70, 8), (1, 1000, 1)):
        sizes = (batch, tokens, 1, heads, heads, 8, 8, gate)
        given, cts = arguments(sizes, np.float32), cotangents(sizes, batch)
        forward = dispatches(lambda given=given: called(given, backend="gpu"))
        backward = dispatches(lambda given=given, cts=cts: called(given, iso.delta_rule_vjp, *cts, backend="gpu"))
        counts.add((forward, backward))
    assert len(counts) == 1 and max(counts) <= (13, 36), counts


def of_torch(sizes, **keywords):
    given = drawn(sizes)
    names, at = list(given), [torch.from_numpy(x) for x in given.values()]

    def call(*at):
        rest = dict(zip(names, at, strict=True))
        q, k, v, beta = (rest.pop(name) for name in NAMES[:4])
        return it.delta_rule(q, k, v, beta, **rest, **keywords)

    return call, at


def test_tensors_are_those_of_the_cpu():
    call, at = of_torch((1, 70, 2, 1, 2, 8, 6, "head"), householders=2, normalise=True)
    same(lambda *at: call(*at)[0], at)
    same(lambda *at: call(*at)[1], at)
    same(lambda *at: vmap(lambda v: call(at[0], at[1], v, *at[3:])[0])(torch.stack([at[2], -at[2]])), at)
    same(compiled(lambda *at: call(*at)[0]), at)


def test_half_precision_and_what_the_gpu_does_not_compute():
    call, at = of_torch((1, 9, 1, 1, 1, 4, 4, "head"))
    with it.use_backend("gpu"):
        o, _ = call(*[t.bfloat16() for t in at])
        assert o.dtype is torch.bfloat16
        with pytest.raises(TypeError, match="float32"):
            call(*[t.double() for t in at])
    with pytest.raises(TypeError, match="float32"):
        called(arguments(CASES[0]), backend="gpu")
