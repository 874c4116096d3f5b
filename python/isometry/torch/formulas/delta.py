"""The delta rule by chunks in torch operations (docs/math/delta.md): one triangular solve for all chunks, then
two products per chunk, then those of the queries for all chunks. Only differences of the sums of g are exponentiated;
the sums are in double precision."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._precision import full_precision
from ._solve import triangular

# Rows (keys) of a chunk; fewer where every row of the state has a gate, whose decays stand inside the products of keys.
_ROWS, _WIDE = 64, 16
# e^-1000 is 0 in both precisions; a limit, so that no difference of infinities arises.
_LEAST = -1000.0
# e^60 softplus(-50) > 1000, while softplus(x) = e^x to rounding below -37.
_FACTOR = 60.0
# Logarithms of two factors: no number but 0 times both of them is small.
_LARGE = {torch.float32: 80.0, torch.float64: 700.0}


@full_precision
def delta_rule(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    """Outputs (B, T, HV, V) and states (N, HV, K, V)."""
    g, initial_state, ends, householders, scale, normalise = rest
    if normalise:
        q, k = unit(q), unit(k)
    q = q * scale
    if ends is None:
        return _sequences(q, k, v, beta, g, initial_state, householders)
    outs, states = [], []
    for n, (first, end) in enumerate(pairwise(ends)):
        rows = slice(first * householders, end * householders)
        own = None if initial_state is None else initial_state[n : n + 1]
        gates = None if g is None else g[:, first:end]
        found = _sequences(q[:, first:end], k[:, rows], v[:, rows], beta[:, rows], gates, own, householders)
        outs.append(found[0])
        states.append(found[1])
    if not states:  # no sequence
        return v[:, :0] * scale, v.new_zeros(0, v.shape[2], k.shape[3], v.shape[3])
    return torch.cat(outs, 1), torch.cat(states)


def _sequences(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor | None, state: Tensor | None, m: int
) -> tuple[Tensor, Tensor]:
    """All sequences have the same length; q is scaled."""
    batch, tokens, heads, key = q.shape
    value_heads, value = v.shape[2:]
    if state is None:
        state = v.new_zeros(batch, value_heads, key, value)
    if not (batch and tokens):
        return v[:, ::m] * 1.0, state * 1.0
    wide = g is not None and g.ndim == 4
    size = min(tokens, max(1, (_WIDE if wide else _ROWS) // m))  # tokens of a chunk
    more = -tokens % size
    count, rows = (tokens + more) // size, size * m

    def cut(x: Tensor, rows: int) -> Tensor:
        """(B, T, h, ...) as (B, h, chunks, rows, ...), zeros behind the end."""
        x = pad(x, (0, 0) * (x.ndim - 2) + (0, rows * count - x.shape[1]))
        return x.unflatten(1, (count, rows)).movedim(3, 1)

    group = value_heads // heads
    q, k = cut(q, size), cut(k, rows)
    if group > 1:
        q, k = (x.repeat_interleave(group, 1) for x in (q, k))
    v, beta = cut(v, rows), cut(beta, rows).unsqueeze(-1)
    last = slice(m - 1, None, m)  # the rows of the queries
    lower = torch.ones(rows, rows, dtype=torch.bool, device=q.device).tril()
    if g is None:
        gram, pairs = k @ k.mT, q @ k.mT
        early, early_q, late, total = k, q, k, None
    else:
        c = cut(g if wide else g.unsqueeze(-1), size).clamp(min=_LEAST)
        if m > 1:  # a token's gate belongs to its first row
            c = pad(c.unsqueeze(-2), (0, 0, 0, m - 1)).flatten(-3, -2)
        c = c.cumsum(-2, dtype=torch.float32 if c.device.type == "mps" else torch.float64)  # mps has no float64
        ends = c[..., -1:, :]
        before, after, total = (x.exp().to(q.dtype) for x in (c, ends - c, ends.squeeze(-2)))
        early, early_q, late = before * k, before[..., last, :] * q, after * k
        if wide:
            between = c.unsqueeze(-2) - c.unsqueeze(-3)
            decay = between.masked_fill(~lower.unsqueeze(-1), -math.inf).exp().to(q.dtype)
            keys = decay * k.unsqueeze(-3)  # of row j, as row i finds it
            gram = (keys * k.unsqueeze(-2)).sum(-1)
            pairs = (keys[..., last, :, :] * q.unsqueeze(-2)).sum(-1)
        else:
            decay = (c - c.mT).masked_fill(~lower, -math.inf).exp().to(q.dtype)
            gram, pairs = (k @ k.mT) * decay, (q @ k.mT) * decay[..., last, :]
    pairs = pairs.masked_fill(~lower[last], 0)
    a = (beta * gram).masked_fill(~lower.tril(-1), 0)
    both = torch.cat((v, -early), -1) * beta
    solved = triangular(a, both, upper=False, unit=True)
    flat = (*solved.split((value, key), -1), early_q, pairs, late, state)
    u, w, early_q, pairs, late, state = (x.flatten(0, 1) for x in flat)
    # not slices: the gradient of each would fill an array of all chunks
    fades = [None] * count if total is None else total.flatten(0, 1).unsqueeze(-1).unbind(1)
    solutions, starts = [], []
    for own, w_of, late_of, fade in zip(u.unbind(1), w.unbind(1), late.mT.unbind(1), fades, strict=True):
        own = torch.baddbmm(own, w_of, state)
        solutions.append(own)
        starts.append(state)
        state = torch.baddbmm(state if fade is None else fade * state, late_of, own)
    u = torch.stack(solutions, 1)
    # a row of u that is not finite, times the zeros of `pairs`, would spread to earlier rows
    spoilt = (u.detach() * 0).cumsum(-2)[..., last, :]
    out = early_q @ torch.stack(starts, 1) + pairs @ u.masked_fill(~u.isfinite(), 0) + spoilt
    out = out.unflatten(0, (batch, value_heads)).flatten(2, 3).movedim(1, 2)
    return (out[:, :tokens] if more else out), state.unflatten(0, (batch, value_heads))


def softplus_gate(log_a: Tensor) -> tuple[Tensor, Tensor]:
    """A factor and a shift, so that -a softplus(x) = factor softplus(x + shift), or both are below -1000.

    Both are finite for every a: a factor that overflows, times a softplus that underflows, would be NaN. Where a is
    large, all gates are below -1000 but those of an x where softplus(x) = e^x, which may be shifted.
    """
    most = log_a.clamp(max=_FACTOR)
    return -most.exp(), log_a - most


def sigmoid_gate(log_a: Tensor, x: Tensor) -> Tensor:
    """sigmoid(a x) for every a, with derivatives that are 0 where it is 0 or 1."""
    most, large = _LARGE[x.dtype], torch.finfo(x.dtype).max
    last = log_a.clamp(max=most)
    first = (log_a - last).clamp(max=most).exp()  # 1 where a does not overflow
    # finite, since it multiplies derivatives of zero
    return ((x * first).clamp(-large, large) * last.exp()).sigmoid()


def unit(x: Tensor) -> Tensor:
    """x / sqrt(|x|^2 + 1e-6) of every vector in the last axis."""
    # a vector whose square may overflow is multiplied by a power of two first
    exponent = math.frexp(torch.finfo(x.dtype).max)[1]
    long = x.detach().abs().amax(-1, keepdim=True) > 2.0 ** (exponent * 0.45)
    down = torch.ones_like(x[..., :1]).masked_fill(long, 2.0 ** (-0.75 * exponent))
    x = x * down
    return x * (x.square().sum(-1, keepdim=True) + 1e-6 * down * down).rsqrt()
