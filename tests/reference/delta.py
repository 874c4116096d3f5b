"""The delta rule and back through it, token by token."""

import numpy as np

from reference.numbers import wide


def unit(x):
    return x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6)


def unit_vjp(x, ct):
    r = np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6)
    return (ct - x * (x * ct).sum(-1, keepdims=True) / r**2) / r


def prepared(q, k, v, beta, g, scale, initial_state, normalise):
    """The arguments in double precision, keys and queries for every value head, the gates (B, T, HV, K or 1)."""
    q, k, v, beta = (wide(x) for x in (q, k, v, beta))
    batch, tokens, heads, key = q.shape
    group = v.shape[2] // heads
    q, k = ((unit(x) if normalise else x).repeat(group, 2) for x in (q, k))
    g = np.zeros((batch, tokens, v.shape[2], 1)) if g is None else wide(g if g.ndim == 4 else g[..., None])
    state = np.zeros((batch, v.shape[2], key, v.shape[3])) if initial_state is None else wide(initial_state)
    return q, k, v, beta, g, state, key**-0.5 if scale is None else scale


def states(k, v, beta, g, state, m):
    """For every row: the state before its gate, behind it, and behind the row."""
    for i in range(k.shape[1]):
        before = state
        faded = before * np.exp(g[:, i // m])[..., None] if i % m == 0 else before
        u = beta[:, i, :, None] * (v[:, i] - np.einsum("bhk,bhkv->bhv", k[:, i], faded))
        state = faded + k[:, i, :, :, None] * u[:, :, None]
        yield before, faded, state


def delta_rule(q, k, v, beta, g=None, householders=1, scale=None, initial_state=None, normalise=False):
    """Outputs (B, T, HV, V) and the last states (B, HV, K, V)."""
    q, k, v, beta, g, state, scale = prepared(q, k, v, beta, g, scale, initial_state, normalise)
    out = np.zeros((*q.shape[:2], *v.shape[2:]))
    for i, (_, _, after) in enumerate(states(k, v, beta, g, state, householders)):
        state = after
        if i % householders == householders - 1:
            t = i // householders
            out[:, t] = scale * np.einsum("bhk,bhkv->bhv", q[:, t], state)
    return out, state


def delta_rule_vjp(
    q, k, v, beta, o_bar, state_bar, g=None, householders=1, scale=None, initial_state=None, normalise=False
):
    """Gradients of q, k, v, beta, g and the initial state."""
    given, shape, m = (wide(q), wide(k)), None if g is None else g.shape, householders
    q, k, v, beta, g, state, scale = prepared(q, k, v, beta, g, scale, initial_state, normalise)
    bars = [np.zeros_like(x) for x in (q, k, v, beta, g)]
    q_bar, k_bar, v_bar, beta_bar, g_bar = bars
    s_bar = wide(state_bar)
    for i, (before, faded, after) in reversed(list(enumerate(states(k, v, beta, g, state, m)))):
        t = i // m
        if i % m == m - 1:
            q_bar[:, t] = scale * np.einsum("bhkv,bhv->bhk", after, o_bar[:, t])
            s_bar = s_bar + scale * q[:, t, :, :, None] * o_bar[:, t, :, None]
        missing = v[:, i] - np.einsum("bhk,bhkv->bhv", k[:, i], faded)
        pulled = np.einsum("bhk,bhkv->bhv", k[:, i], s_bar)
        beta_bar[:, i] = (pulled * missing).sum(-1)
        u_bar = v_bar[:, i] = beta[:, i, :, None] * pulled
        k_bar[:, i] = np.einsum("bhkv,bhv->bhk", s_bar, beta[:, i, :, None] * missing)
        k_bar[:, i] -= np.einsum("bhkv,bhv->bhk", faded, u_bar)
        s_bar = s_bar - k[:, i, :, :, None] * u_bar[:, :, None]
        if i % m == 0:
            s_bar = s_bar * np.exp(g[:, t])[..., None]
            by_row = (s_bar * before).sum(-1)
            g_bar[:, t] = by_row if g.shape[-1] > 1 else by_row.sum(-1, keepdims=True)
    result = []
    for x, bar in zip(given, (q_bar, k_bar), strict=True):
        bar = bar.reshape(*x.shape[:3], bar.shape[2] // x.shape[2], x.shape[-1]).sum(3)
        result.append(unit_vjp(x, bar) if normalise else bar)
    own = None if shape is None else g_bar.reshape(shape)
    return [*result, v_bar, beta_bar, own, None if initial_state is None else s_bar]
