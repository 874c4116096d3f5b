"""Gates from extreme parameters: the limits of values and gradients, against the token loop in double precision."""

import itertools

import numpy as np
import pytest
import torch

import isometry.torch as it
from reference import delta as ref

#: Logarithms of factors, and the numbers that they multiply after softplus or before a sigmoid.
FACTORS = np.array([-800.0, -200, -87, -60, -5, 0, 3, 59, 60, 61, 80, 81, 88, 100, 161, 200, 701, 1000, 1500])
INPUTS = np.array(
    [-1e30, -1e4, -900, -200, -150, -103, -88, -60, -37, -10, -1, -1e-30, 0, 1e-40, 1e-3, 2, 30, 1e4, 1e30]
)
BARS = {torch.float32: 2e-4, torch.float64: 1e-11}
NAMES = ("q", "k", "v", "beta", "g", "initial_state")
FUNCTIONS = ["chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule", "chunk_kda", "fused_recurrent_kda"]


def log_softplus(x):
    return np.where(x < -37, x, np.log(np.logaddexp(0, np.maximum(x, -37))))


def softplus_gates(a, x):
    """-e^a softplus(x), and its derivatives by a and by x; the first is bounded where e of it is 0."""
    with np.errstate(over="ignore"):
        gate, slope = -np.exp(a + log_softplus(x)), -np.exp(a - np.logaddexp(0, -x))
    return gate, gate, slope


def sigmoid_gates(a, x, bound):
    with np.errstate(over="ignore", divide="ignore"):
        u = np.sign(x) * np.exp(a + np.log(np.abs(x)))
        bell = np.exp(-np.logaddexp(0, u) - np.logaddexp(0, -u))
        by_x = bound * np.exp(a - np.logaddexp(0, u) - np.logaddexp(0, -u))
    return bound * np.exp(-np.logaddexp(0, -u)), bound * times(bell, u), by_x


def times(ct, slope):
    """A product whose first factor is 0 in the limit where the second overflows."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(ct == 0, 0, ct * slope)


def problem(dtype, rows, rng):
    """A sequence of three tokens for every input, a head for every factor."""
    b, t, h, k, v = len(INPUTS), 3, len(FACTORS), 2, 2
    draw = lambda *shape: rng.standard_normal(shape)
    given = {"q": draw(b, t, h, k), "k": draw(b, t, h, k), "v": draw(b, t, h, v), "beta": 2 * rng.random((b, t, h))}
    given["initial_state"] = draw(b, h, k, v)
    x = np.broadcast_to(INPUTS[:, None, None], (b, t, h)) * np.array([1, 1, 0.999])[:, None]
    g = np.broadcast_to(x[..., None], (b, t, h, k)) if rows else x
    return {key: torch.from_numpy(np.array(a)).to(dtype) for key, a in (given | {"g": g}).items()}


def like(found, expected, bar, what):
    """Each entry, relative to its size or 1; what is too large for a precision is infinite in it."""
    found = found.detach().numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        expected, found = np.asarray(expected).astype(found.dtype).astype(float), found.astype(float)
        wrong = ~((found == expected) | (np.abs(found - expected) <= bar * (1 + np.abs(expected))))
    assert not wrong.any(), (what, np.argwhere(wrong)[:5], found[wrong][:5], expected[wrong][:5])


CALLS = [*((name, None) for name in FUNCTIONS), *((name, -4.0) for name in FUNCTIONS[2:])]


@pytest.mark.parametrize("dtype", BARS, ids=str)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("name", "bound"), CALLS)
def test_gates_in_the_limit(name, bound, bias, dtype):
    """361 pairs of a factor and an input in each call."""
    rows, rng = name.endswith("kda"), np.random.default_rng(0)
    leaves = problem(dtype, rows, rng) | {"A_log": torch.from_numpy(FACTORS).to(dtype)}
    if bias:
        own = np.resize([0.0, -3.0, 100.0, -150.0], len(FACTORS))
        leaves["dt_bias"] = torch.from_numpy(own.repeat(2 if rows else 1)).to(dtype)
    for leaf in leaves.values():
        leaf.requires_grad_()
    more = {} if bound is None else {"lower_bound": bound}
    out = getattr(it.fla, name)(**leaves, output_final_state=True, use_gate_in_kernel=True, **more)
    cts = [torch.from_numpy(rng.standard_normal(t.shape)).to(dtype) for t in out]
    found = dict(zip(leaves, torch.autograd.grad(out, list(leaves.values()), cts), strict=True))
    wide = {key: leaf.detach().double().numpy() for key, leaf in leaves.items()}
    a = wide.pop("A_log").reshape(-1, *[1] * rows)
    x = wide.pop("g") + (wide.pop("dt_bias").reshape(-1, *[2] * rows) if bias else 0)
    gates, by_a, by_x = softplus_gates(a, x) if bound is None else sigmoid_gates(a, x, bound)
    arrays = wide | {"g": np.maximum(gates, -1e4)}
    for one, other in zip(out, ref.delta_rule(**arrays), strict=True):
        like(one, other, BARS[dtype], "values")
    o_bar, state_bar = (ct.double().numpy() for ct in cts)
    bars = dict(zip(NAMES, ref.delta_rule_vjp(**arrays, o_bar=o_bar, state_bar=state_bar), strict=True))
    over = (0, 1, 3) if rows else (0, 1)
    bars["A_log"], bars["g"] = times(bars["g"], by_a).sum(over), times(bars["g"], by_x)
    if bias:
        bars["dt_bias"] = bars["g"].sum((0, 1)).reshape(-1)
    for key, bar in found.items():
        # a sum of infinities of both signs has no limit
        kept = found["g"].isfinite().all(0).all(0).flatten() if key == "dt_bias" else ...
        like(bar[kept], bars[key][kept], BARS[dtype], key)


def test_the_layer_in_the_limit():
    """98 pairs in each precision: one step of the layer is one of the rule with gates of the limit."""
    for dtype, bias, log_decay in itertools.product(BARS, (True, False), (-200.0, 0, 59, 60, 61, 100, 1000)):
        layer = it.nn.DeltaProduct(1, 2, heads=2, bias=bias, dtype=dtype)
        x = torch.tensor([-500.0, -150, -99.5, -58, 0.5, 40, 1e4], dtype=dtype).reshape(1, -1, 1).requires_grad_()
        with torch.no_grad():
            layer.log_decay_l0.fill_(log_decay)
            layer.transition_weight_l0[-2:] = 1
            if bias:
                layer.transition_bias_l0[-2:] = 0
        h0 = torch.ones(1, x.shape[1], 2, 1, 1, dtype=dtype)
        gate = softplus_gates(np.array(log_decay), x.detach().double().numpy()[0])[0]
        out, state = layer(x, h0)
        found = torch.autograd.grad(out.sum() + state.sum(), [x, *layer.parameters()])
        assert all(bar.isfinite().all() for bar in found)
        with torch.no_grad():
            layer.log_decay_l0.fill_(-1000)  # no decay: what is written, and what is left of the state
            kept, added = layer(x, h0)[1], layer(x, 0 * h0)[1]
        like(
            state[0, :, 0, 0],
            ((kept - added)[0, :, 0, 0].double().numpy() * np.exp(gate) + added[0, :, 0, 0].double().numpy()),
            BARS[dtype],
            "state",
        )
