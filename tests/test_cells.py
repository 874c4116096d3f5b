"""The functions of the gated cells in the NumPy face: members of ensembles, cotangents in parts, refusals."""

import numpy as np
import pytest

import isometry as iso

STEPS, BATCH, N, FEATURES, MEMBERS = 7, 3, 4, 2, 2
SHAPES = {
    "gru": {"w": (3, N, N), "u": (3, N, FEATURES), "b": (3, N)},
    "goru": {"w": (2, N, N), "u": (3, N, FEATURES), "b": (3, N)},
    "lstm": {"w": (4, N, N), "u": (4, N, FEATURES), "b": (4, N)},
    "rum": {
        "w": (2 * N, N),
        "u": (2 * N, FEATURES),
        "b": (2 * N,),
        "embed_weight": (N, FEATURES),
        "embed_bias": (N,),
    },
}
SIZES = {"lengths": [7, 4, 0], "reverse": True}


def drawn(name, members=None):
    rng = np.random.default_rng(3)
    lead = () if members is None else (members,)
    x = rng.standard_normal((STEPS, *lead, BATCH, FEATURES))
    arrays = {key: 0.5 * rng.standard_normal((*lead, *shape)) for key, shape in SHAPES[name].items()}
    first = ("h0", "c0") if name == "lstm" else ("h0",)
    starts = {key: rng.standard_normal((*lead, BATCH, N)) for key in first}
    turn = (iso.Cayley(rng.standard_normal((*lead, N * (N - 1) // 2))),) if name == "goru" else ()
    return turn, x, arrays, starts


def parts(found):
    """The arrays of a result: states, (h, c), or states and the memory if there is one."""
    return tuple(a for a in found if a is not None) if isinstance(found, tuple) else (found,)


def pulled(name, turn, x, arrays, keywords, cts=None):
    found = getattr(iso, name)(*turn, x, *arrays.values(), **keywords)
    made = parts(found)
    cts = tuple(np.cos(np.arange(a.size)).reshape(a.shape) for a in made) if cts is None else cts
    ct = cts if name == "lstm" else cts[0]
    states = made if name == "lstm" else made[0]
    return made, cts, getattr(iso, name + "_vjp")(*turn, x, *arrays.values(), states, ct, **keywords)


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_against_differences(name):
    """Of every argument, with lengths and in reverse."""
    turn, x, arrays, first = drawn(name)
    if name == "goru":
        turn = (iso.Dense(turn[0].matrix()),)
    keywords = {**first, **SIZES}
    _, cts, grads = pulled(name, turn, x, arrays, keywords)
    at = {"x": x, **arrays, **first}

    def value(values, turn=turn):
        own = {**keywords, **{key: values[key] for key in first}}
        made = parts(getattr(iso, name)(*turn, values["x"], *(values[key] for key in arrays), **own))
        return sum((a * ct).sum() for a, ct in zip(made, cts, strict=True))

    rng, step = np.random.default_rng(5), 1e-6
    for key, a in at.items():
        way = rng.standard_normal(a.shape)
        slope = (value(at | {key: a + step * way}) - value(at | {key: a - step * way})) / (2 * step)
        assert abs((grads[key] * way).sum() - slope) < 1e-6 * max(1, abs(slope)), key
    if turn:
        w, way = turn[0].matrix(), rng.standard_normal((N, N))
        both = [value(at, (iso.Dense(w + sign * step * way),)) for sign in (1, -1)]
        slope = (both[0] - both[1]) / (2 * step)
        assert abs((grads["transition"]["weight"] * way).sum() - slope) < 1e-6 * max(1, abs(slope))


@pytest.mark.parametrize("output", ["states", "last"])
@pytest.mark.parametrize("name", SHAPES)
def test_an_ensemble_is_its_members(name, output):
    """States, last states and gradients, with marks of each member."""
    turn, x, arrays, first = drawn(name, MEMBERS)
    marks = np.random.default_rng(1).random((STEPS, MEMBERS, BATCH)) < 0.3
    keywords = {**first, **SIZES, "starts": marks}
    made, cts, grads = pulled(name, turn, x, arrays, keywords)
    last = parts(getattr(iso, name)(*turn, x, *arrays.values(), output="last", **keywords))
    for e in range(MEMBERS):
        own = {**{key: a[e] for key, a in first.items()}, **SIZES, "starts": marks[:, e]}
        one_turn = tuple(iso.Cayley(op.upper[e]) for op in turn)
        one_arrays = {key: a[e] for key, a in arrays.items()}
        alone = one_turn, x[:, e], one_arrays
        if output == "last":
            ends = parts(getattr(iso, name)(*one_turn, x[:, e], *one_arrays.values(), output="last", **own))
            for a, b in zip(last, ends, strict=True):
                np.testing.assert_allclose(a[e], b, rtol=1e-12, atol=1e-12)
            continue
        states, _, one = pulled(name, *alone, own, tuple(ct[:, e] for ct in cts))
        for a, b in zip(made, states, strict=True):
            np.testing.assert_allclose(a[:, e], b, rtol=1e-12, atol=1e-12)
        for key in {"x", *arrays, *first}:
            part = grads[key][:, e] if key == "x" else grads[key][e]
            np.testing.assert_allclose(part, one[key], rtol=1e-10, atol=1e-12, err_msg=key)


def test_the_memory_of_a_rum_has_a_cotangent():
    """With lam 1 states and cotangents are pairs; the states alone are enough."""
    _, x, arrays, _ = drawn("rum")
    found = iso.rum(x, *arrays.values(), lam=1)
    ct = np.ones_like(found[0]), np.ones_like(found[1])
    pair = iso.rum_vjp(x, *arrays.values(), found, ct, lam=1)
    alone = iso.rum_vjp(x, *arrays.values(), found[0], ct, lam=1)
    without = iso.rum_vjp(x, *arrays.values(), found[0], ct[0], lam=1)
    np.testing.assert_array_equal(pair["w"], alone["w"])
    assert np.abs(pair["w"] - without["w"]).max() > 1e-3


@pytest.mark.parametrize("name", SHAPES)
def test_other_states_are_refused(name):
    turn, x, arrays, first = drawn(name)
    made, cts, _ = pulled(name, turn, x, arrays, first)
    wrong = tuple(a + 1 for a in made)
    given = (wrong, cts) if name == "lstm" else (wrong[0], cts[0])
    with pytest.raises(ValueError, match="states must be what"):
        getattr(iso, name + "_vjp")(*turn, x, *arrays.values(), *given, **first)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("argument", ["w", "u", "b"])
def test_messages_name_the_argument(name, argument):
    turn, x, arrays, _ = drawn(name)
    wrong = arrays | {argument: arrays[argument][..., :-1]}
    with pytest.raises(ValueError, match=rf"^{argument} must have shape"):
        getattr(iso, name)(*turn, x, *wrong.values())
    nan = arrays | {argument: np.full_like(arrays[argument], np.nan)}
    with pytest.raises(ValueError, match=argument):
        getattr(iso, name)(*turn, x, *nan.values())
    with pytest.raises(TypeError, match=argument):
        getattr(iso, name)(*turn, x, *(arrays | {argument: 1j * arrays[argument]}).values())


def test_a_state_of_two_parts_is_a_pair():
    _, x, arrays, _ = drawn("lstm")
    marks = np.ones((STEPS, BATCH), bool)
    with pytest.raises(TypeError, match="start_state"):
        iso.lstm(x, *arrays.values(), starts=marks, start_state=np.zeros(N))
