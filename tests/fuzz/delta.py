"""The delta rule: gates, groups of heads, rows of a token, lengths around the ends of chunks."""

import numpy as np

import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Close
from reference import delta as ref

LENGTHS = (1, 2, 3, 5, 8, 9, 17, 33, 0, 63, 64, 65, 66, 130)


def delta(choices, face):
    """Outputs and states, in the NumPy face also gradients."""
    rng, dtype = choices.rng, choices.of((draw.F8, draw.F4))
    batch, tokens, m = choices.of((1, 2, 1, 0)), choices.of(LENGTHS), choices.of((1, 1, 2, 3))
    heads, group = choices.between(1, 2), choices.of((1, 2, 1))
    key, value = draw.SMALL.size(choices), draw.SMALL.size(choices)
    shape = batch, tokens * m, heads * group
    q, k = rng.standard_normal((batch, tokens, heads, key)), rng.standard_normal((batch, tokens * m, heads, key))
    keywords = {"householders": m} if m > 1 or choices.once_in(4) else {}
    if choices.once_in(2):
        keywords["normalise"] = True
    else:  # unit keys: others with large rates grow without bound
        k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    if choices.once_in(3):
        keywords["scale"] = choices.of((1.0, 0.3, 0))
    beta = rng.choice([0.0, 1.0, 2.0], shape) if choices.once_in(3) else rng.uniform(0, 2, shape)
    arrays = {"q": q, "k": k, "v": rng.standard_normal((*shape, value)), "beta": beta}
    gates = choices.of((None, (), (key,), ()))
    if gates is not None:
        arrays["g"] = -choices.of((0.3, 50.0, 0.0)) * rng.uniform(0, 1, (batch, tokens, heads * group, *gates))
    if choices.once_in(2):
        arrays["initial_state"] = rng.standard_normal((batch, heads * group, key, value))
    arrays = {name: a.astype(dtype) for name, a in arrays.items()}
    size = (batch, tokens, heads * group, value), (batch, heads * group, key, value)
    cts = dict(zip(("o_bar", "state_bar"), (rng.standard_normal(s).astype(dtype) for s in size), strict=True))
    call = Call(
        "delta_rule",
        {**arrays, **keywords},
        {},
        expected=lambda: results(arrays, keywords, dtype),
        options=(*keywords, "backend"),
    )
    if face.name == "numpy" and choices.once_in(2):
        call.function = "delta_rule_vjp"
        call.arguments |= cts
        call.expected = lambda: gradients(arrays, keywords, cts, dtype)
    call.threads = choices.between(1, 2)
    return draw.finished(choices, face, call)


def rows(arrays):
    return 8 + arrays["k"].shape[1]


def results(arrays, keywords, dtype):
    o, state = ref.delta_rule(**arrays, **keywords)
    bound = tol.sequence(dtype, 1, rows(arrays))
    return {"o": Close(o, dtype, bound), "state": Close(state, dtype, bound)}


def gradients(arrays, keywords, cts, dtype):
    found = ref.delta_rule_vjp(**arrays, **cts, **keywords)
    bound, floor = tol.sequence_gradient(dtype, 1, rows(arrays)), tol.FLOOR * np.linalg.norm(cts["o_bar"]) + 1e-2
    names = ("q", "k", "v", "beta", "g", "initial_state")
    return {
        name: Close(x, dtype, bound, floor * stretch(arrays[name], keywords) if name in ("q", "k") else floor)
        for name, x in zip(names, found, strict=True)
        if x is not None
    }


def stretch(rows, keywords):
    """The gradient of a normalised row is a difference of numbers over the row's length, which cancel if K = 1."""
    lengths = np.sqrt((ref.wide(rows) ** 2).sum(-1) + 1e-6)
    return max(1.0, 1 / lengths.min(initial=1.0)) if keywords.get("normalise") else 1.0
