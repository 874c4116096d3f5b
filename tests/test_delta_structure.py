"""The delta rule of arrays with structure: finite values and gradients, those of the token loop."""

import numpy as np
import pytest
import torch

import isometry.torch as it
from reference import delta as ref
from support import structure

NAMES = ("q", "k", "v", "beta", "g", "initial_state")
#: Gates that keep all, nothing, and what is between; e of some of them is no normal number.
GATES = (0.0, -1e-3, -1.0, -50.0, -88.0, -200.0, -900.0, -1e5, -np.inf)
#: Tokens on both sides of rows one by one, a chunk of wide gates, a chunk, and a segment.
TOKENS = (1, 8, 9, 16, 17, 64, 65)
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
