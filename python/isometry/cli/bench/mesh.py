"""Meshes: applied to B rows, and as the transition of a recurrence, forward and backward.

Flops per row of size n and L layers: 3 n L forward and 9 n L backward, three times as many for complex numbers. The
peers turn all angles into two arrays at once; a layer is then p x + q x', x' the partners: pairs as slices
of a view whose two halves are exchanged, or gathered by their index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor

import isometry.torch as it
from isometry._objects.mesh import layers
from isometry.cli.bench.autograd import differentiable
from isometry.cli.bench.row import Bar, Candidate, Row

N, ROWS, STEPS, INPUTS = 512, 50, 500, 2
Angles = dict[str, Tensor]
Apply = Callable[[it.Mesh, Angles], Callable[[Tensor], Tensor]]


def rows() -> Iterator[Row]:
    for dtype in (torch.float32, torch.complex64):
        for depth in (2, 32, None):
            yield applied(depth, dtype)
    for dtype in (torch.float32, torch.complex64):
        yield recurrent(2, dtype)


def factors(op: it.Mesh, angles: Angles) -> Iterator[tuple[int, int, int, Tensor, Tensor]]:
    """Where the pairs of a layer stand, and p and q of y = p x + q x' on them, the layer applied first at first."""
    theta, phi = angles["theta"], angles.get("phi")
    s, c = theta.sin(), theta.cos()
    e = None if phi is None else torch.polar(torch.ones_like(phi), -phi)
    p = torch.stack((s, -s) if e is None else (s * e, -s + 0j))
    q = torch.stack((c, c) if e is None else (c + 0j, c * e))
    plan = list(layers(*op.frame.shape[:3]))
    ends = torch.tensor([pairs for _, pairs, _ in plan]).cumsum(0).tolist()
    for (start, pairs, distance), end in zip(reversed(plan), reversed(ends), strict=True):
        own = slice(end - pairs, end)
        view = lambda t, own=own, distance=distance: t[:, own].unflatten(1, (-1, distance)).transpose(0, 1)
        yield start, pairs, distance, view(p), view(q)


def last(angles: Angles) -> Tensor | None:
    """The entries of D."""
    phases = angles.get("phases")
    return None if phases is None else torch.polar(torch.ones_like(phases), phases)


def by_slices(op: it.Mesh, angles: Angles) -> Callable[[Tensor], Tensor]:
    """W x layer by layer, on views of the pairs."""
    ready, d = list(factors(op, angles)), last(angles)

    def apply(x: Tensor) -> Tensor:
        for start, pairs, distance, p, q in ready:
            blocks = x[:, start : start + 2 * pairs].unflatten(1, (-1, 2, distance))
            y = torch.addcmul(p * blocks, q, blocks.flip(2)).flatten(1)
            x = y if 2 * pairs == x.shape[1] else torch.cat((x[:, :start], y, x[:, start + 2 * pairs :]), 1)
        return x if d is None else x * d

    return apply


def by_index(op: it.Mesh, angles: Angles) -> Callable[[Tensor], Tensor]:
    """W x layer by layer, partners gathered by their index; an element without one is its own, with p = 1 and q = 0."""
    n, ready, d = op.n, [], last(angles)
    for start, pairs, distance, p, q in factors(op, angles):
        edges = (start, n - start - 2 * pairs)
        partner = torch.arange(n)
        blocks = partner[start : start + 2 * pairs].unflatten(0, (-1, 2, distance))
        partner[start : start + 2 * pairs] = blocks.flip(1).flatten()
        fill = lambda t, value, edges=edges: torch.nn.functional.pad(t.flatten(), edges, value=value)
        ready.append((partner, fill(p, 1.0), fill(q, 0.0)))

    def apply(x: Tensor) -> Tensor:
        for partner, p, q in ready:
            x = torch.addcmul(p * x, q, x[:, partner])
        return x if d is None else x * d

    return apply


PEERS: dict[str, Apply] = {"torch slices": by_slices, "torch index": by_index}


def ours(op: it.Mesh, angles: Angles) -> Callable[[Tensor], Tensor]:
    return rebuilt(op, angles).apply


def rebuilt(op: it.Mesh, angles: Angles) -> it.Mesh:
    """The same mesh of other angles."""
    layout: Literal["brick", "fft"] = "fft" if op.layout == "fft" else "brick"
    phi, phases = angles.get("phi"), angles.get("phases")
    return it.Mesh(angles["theta"], n=op.n, layers=op.layers, layout=layout, phi=phi, phases=phases)


def drawn(depth: int | None, dtype: torch.dtype) -> it.Mesh:
    """A brick mesh of so many layers, or the fft layout."""
    return it.Mesh.random(N, layers=depth, layout="fft" if depth is None else "brick", dtype=dtype)


def leaves(op: it.Mesh, wide: bool) -> Angles:
    """Its angles, to be differentiated."""
    held = {"theta": op.theta, "phi": op.phi, "phases": op.phases}
    own = torch.float64 if wide else torch.float32
    return {name: t.to(own, copy=True).requires_grad_() for name, t in held.items() if t is not None}


def label(op: it.Mesh) -> str:
    """Layout and field."""
    layout = "fft" if op.layout == "fft" else f"L{op.layers}"
    return f"{N}/{layout}/B{ROWS}{' complex' if op.dtype.is_complex else ''}"


def applied(depth: int | None, dtype: torch.dtype) -> Row:
    """The row of one mesh; the operator is rebuilt in every call."""
    torch.manual_seed(0)
    op = drawn(depth, dtype)
    x, cotangent = torch.randn(ROWS, N, dtype=dtype), torch.randn(ROWS, N, dtype=dtype)
    double = torch.complex128 if dtype.is_complex else torch.float64

    def side(name: str, apply: Apply, wide: bool = False) -> Candidate:
        own = double if wide else dtype
        angles, rows_ = leaves(op, wide), x.to(own, copy=True).requires_grad_()
        return differentiable(name, angles | {"x": rows_}, lambda: apply(op, angles)(rows_), cotangent.to(own))

    many = 3 if dtype.is_complex else 1
    return Row(
        name=f"mesh apply {label(op)}",
        ours=side("isometry", ours),
        peers=[side(name, apply) for name, apply in PEERS.items()],
        reference=side("float64", by_slices, wide=True).results or dict,
        bars=[Bar("torch", 4.0, 10.0)],
        flops=many * 12.0 * N * op.layers * ROWS,
    )


def tanh(z: Tensor) -> Tensor:
    """tanh of a real number, or of both parts of a complex one."""
    return torch.view_as_complex(torch.tanh(torch.view_as_real(z))) if z.is_complex() else torch.tanh(z)


def recurrent(depth: int, dtype: torch.dtype) -> Row:
    """h <- tanh(W h + V x) over a sequence."""
    torch.manual_seed(0)
    op = drawn(depth, dtype)
    v, x = torch.randn(N, INPUTS, dtype=dtype) / 4, torch.randn(STEPS, ROWS, INPUTS, dtype=dtype)
    cotangent = torch.randn(STEPS, ROWS, N, dtype=dtype)
    double = torch.complex128 if dtype.is_complex else torch.float64

    def loop(apply: Apply) -> Callable[[Angles, Tensor, Tensor], Tensor]:
        def states(angles: Angles, v: Tensor, x: Tensor) -> Tensor:
            step, h, found = apply(op, angles), x.new_zeros(ROWS, N), []
            for drive in (x @ v.mT).unbind():
                h = tanh(step(h) + drive)
                found.append(h)
            return torch.stack(found)

        return states

    def fused(angles: Angles, v: Tensor, x: Tensor) -> Tensor:
        return it.recurrence(rebuilt(op, angles), x, v)

    def side(name: str, states: Callable[[Angles, Tensor, Tensor], Tensor], wide: bool = False) -> Candidate:
        own = double if wide else dtype
        angles, weight = leaves(op, wide), v.to(own, copy=True).requires_grad_()
        forward = lambda: states(angles, weight, x.to(own))
        return differentiable(name, angles | {"input_weight": weight}, forward, cotangent.to(own))

    many = 3 if dtype.is_complex else 1
    return Row(
        name=f"mesh recurrence {label(op)} T{STEPS}",
        ours=side("isometry", fused),
        peers=[side(f"{name}, loop", loop(apply)) for name, apply in PEERS.items()],
        reference=side("float64", loop(by_slices), wide=True).results or dict,
        bars=[Bar("torch loop", 5.0, 10.0)],
        flops=many * 12.0 * N * (depth + INPUTS) * ROWS * STEPS,
    )
