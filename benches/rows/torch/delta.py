"""The gated delta rule: forward, forward and backward over a sequence, and one token.

The peers are the functions with which Hugging Face transformers computes its models off CUDA, written out: chunks of 64
rows as slices of arrays of all chunks; and the same with `unbind`, since the gradient of every slice fills an array of
all chunks.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

import isometry.torch as it
from harness.row import Bar, Row
from rows.torch.sides import row

HEADS, WIDTH, CHUNK = 16, 128, 64
LENGTHS = (512, 2048, 4096)
SIZES = f"H{HEADS} K{WIDTH} V{WIDTH}"
# multiply-adds of a row and head: products with the state, and of the triangles of a chunk
FORWARD = 6.0 * WIDTH**2 + 4.0 * CHUNK * WIDTH
BACKWARD = 14.0 * WIDTH**2 + 11.0 * CHUNK * WIDTH
SLICES, UNBIND = "transformers", "with unbind"


def delta() -> Iterator[Row]:
    bars = [Bar("best of torch", 2.0, 3.0)]
    for steps in LENGTHS:
        flops = FORWARD * steps * HEADS
        yield row(f"forward T{steps} {SIZES}", partial(drawn, steps), ours, PEERS, bars, flops, gradients=False)
    yield from map(training, LENGTHS)
    yield token()


def training(steps: int) -> Row:
    bars = [Bar("best of torch", 2.0, 2.7)]
    bars += [Bar("transformers", 10.0, 10.0, (SLICES,))] if steps == LENGTHS[-1] else []
    flops = (FORWARD + BACKWARD) * steps * HEADS
    return row(f"backward too T{steps} {SIZES}", partial(drawn, steps), ours, PEERS, bars, flops)


def token() -> Row:
    draw, bars = partial(drawn, 1, state=True), [Bar("transformers", 5.0, 8.0)]
    return row(f"one token {SIZES}", draw, ours, {SLICES: one}, bars, gradients=False)


def drawn(steps: int, heads: int = HEADS, state: bool = False) -> dict[str, Tensor]:
    """Unit keys, rates in (0, 1), gates like those of a trained layer."""
    q, k, v = torch.randn(3, 1, steps, heads, WIDTH).unbind()
    g, beta = -0.5 * torch.rand(1, steps, heads), torch.rand(1, steps, heads)
    made = {"q": q, "k": torch.nn.functional.normalize(k, dim=-1), "v": v, "g": g, "beta": beta}
    return made | ({"state": torch.randn(1, heads, WIDTH, WIDTH)} if state else {})


def ours(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor | None = None) -> Tensor:
    return it.delta_rule(q, k, v, beta, g=g, initial_state=state)[0]


# ---------------------------------------------------------------- the peers


def chunked(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, *, sliced: bool) -> Tensor:
    """`torch_chunk_gated_delta_rule` of transformers, for a length that is a multiple of 64."""
    q, k, v, beta, g = (x.transpose(1, 2).contiguous() for x in (q, k, v, beta, g))
    q = q * q.shape[-1] ** -0.5
    v_beta, k_beta = v * beta.unsqueeze(-1), k * beta.unsqueeze(-1)
    q, k, k_beta, v_beta = (x.unflatten(2, (-1, CHUNK)) for x in (q, k, k_beta, v_beta))
    decay = g.unflatten(2, (-1, CHUNK)).cumsum(3)
    above = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).triu(1)
    pairwise = (decay.unsqueeze(4) - decay.unsqueeze(3)).masked_fill(above, float("-inf")).exp()
    system, inside = (k_beta @ k.mT) * pairwise, (q @ k.mT) * pairwise
    solve = partial(torch.linalg.solve_triangular, system, upper=False, unitriangular=True)
    values, keys = solve(v_beta), solve(k_beta * decay.exp().unsqueeze(-1))
    q = q * decay.exp().unsqueeze(-1)
    k = k * (decay[..., -1:] - decay).exp().unsqueeze(-1)
    fade = decay[..., -1].exp()[..., None, None]
    count, state = q.shape[2], torch.zeros_like(values[:, :, 0, :1]).expand(*values.shape[:2], k.shape[-1], -1)
    if sliced:
        out = torch.zeros_like(values)
        for i in range(count):
            new = values[:, :, i] - keys[:, :, i] @ state
            out[:, :, i] = q[:, :, i] @ state + inside[:, :, i] @ new
            state = state * fade[:, :, i] + k[:, :, i].mT @ new
    else:
        outs = []
        for q_i, k_i, value, key, within, less in zip(
            *(x.unbind(2) for x in (q, k, values, keys, inside, fade)), strict=True
        ):
            new = value - key @ state
            outs.append(q_i @ state + within @ new)
            state = state * less + k_i.mT @ new
        out = torch.stack(outs, 2)
    return out.flatten(2, 3).transpose(1, 2).contiguous()


def one(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    """`torch_recurrent_gated_delta_rule` of transformers, for one token."""
    q, k, v, beta, g = (x.transpose(1, 2).contiguous() for x in (q, k, v, beta, g))
    q = q / q.shape[-1] ** 0.5
    out = torch.zeros_like(v)
    for i in range(v.shape[2]):
        state = state * g[:, :, i].exp()[..., None, None]
        read = (state * k[:, :, i].unsqueeze(-1)).sum(-2)
        new = (v[:, :, i] - read) * beta[:, :, i].unsqueeze(-1)
        state = state + k[:, :, i].unsqueeze(-1) * new.unsqueeze(-2)
        out[:, :, i] = (state * q[:, :, i].unsqueeze(-1)).sum(-2)
    return out.transpose(1, 2).contiguous()


PEERS = {SLICES: partial(chunked, sliced=True), UNBIND: partial(chunked, sliced=False)}
