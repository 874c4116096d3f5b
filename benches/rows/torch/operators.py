"""The rows of the operators, forward and backward: a matrix, or an operator applied to B rows; always rebuilt.

Flops of W from m reflections: Gram n m^2, T^-1 m^3/3, h n m^2, W 2 n^2 m; backward 4 n^2 m + 4 n m^2. On rows: T n m^2,
forward 4 n m B + m^2 B, backward 8 n m B + 3 m^2 B + 2 n m^2. Cayley: 6 n^3, an inverse and two products. Exponential:
the 23 products that both directions take for s = 3. Rotation: 8 n per row forward and 26 n backward, 30 n per pair;
4 n^2 and 13 n^2 of a matrix. Bounded SVD: 6 n^3, or 12 n^2 for each row. Forward alone, for each row of n elements:
Kronecker 4 n F with factors 2 x 2, Fourier 10 n log2 n + 50 n, a mesh of L layers 3 n L, three times as many for
complex numbers.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, randn

import isometry.torch as it
from harness.row import Bar, Row
from harness.sizes import BATCHES, CAYLEY, REFLECTIONS, ROWS, SOLVED
from rows.torch import formulas
from rows.torch.sides import Call, Draw, row

SMALL = (1.0, 2.0)
WY = "torch compact WY"
SOLVE, SERIES, EIGH, CLOSED = "torch.linalg.solve", "torch.matrix_exp", "torch.linalg.eigh", "torch eigh, closed form"
MARGIN = 0.1
B = 50  # rows


def householder() -> Iterator[Row]:
    matrix = lambda vectors: it.Householder(vectors).matrix()
    for (n, m), bar in REFLECTIONS.items():
        peers, bars = {WY: formulas.wy_matrix}, [Bar(WY, *bar, (WY,))]
        flops = 6.0 * n * n * m + 3.0 * n * m * m - 7 * m**3 / 3  # 6.7 n^3 for m = n (measurements.md)
        # a peer restricted to trapezoids has no gradient above the diagonal
        pick, draw = {"vectors": torch.tril}, draw_vectors(n, m)
        yield row(f"householder matrix {n}/{m}", draw, matrix, peers, bars, flops, pick=pick)


def apply() -> Iterator[Row]:
    for (n, m, batch), bar in ROWS.items():
        yield reflected(f"householder apply {n}/{m}/B{batch}", n, m, batch, bar)


def draw_vectors(n: int, m: int, *batch: int) -> Draw:
    return lambda: {"vectors": torch.tril(randn(n, m))} | ({"x": randn(*batch, n)} if batch else {})


def reflected(name: str, n: int, m: int, batch: int, bar: tuple[float, float]) -> Row:
    ours, flops = lambda u, x: it.Householder(u).apply(x), 12.0 * n * m * batch + 4.0 * m * m * batch + 3.0 * n * m * m
    return row(name, draw_vectors(n, m, batch), ours, {WY: formulas.wy_apply}, [Bar(WY, *bar)], flops)


def cayley() -> Iterator[Row]:
    for n, bar in CAYLEY.items():
        yield solved(f"cayley {n}", (n, n), bar, {"signs": formulas.half_signs(n)})


def batches() -> Iterator[Row]:
    for (count, n), bar in BATCHES.items():
        yield solved(f"cayley batch {count}x{n}", (count, n, n), bar, {})


def small() -> Iterator[Row]:
    """One small call: the overhead of the path through Python."""
    yield reflected("small householder 8/2/B1", 8, 2, 1, SMALL)
    yield solved("small cayley 8", (8, 8), SMALL, {})


def solved(name: str, shape: tuple[int, ...], bar: tuple[float, float], signs: dict[str, Tensor]) -> Row:
    """Our side reads the packed triangle, the peer a full matrix."""
    draw, ours = (
        lambda: {"upper": randn(shape) * 0.05} | signs,
        lambda p, signs=None: it.Cayley(p, signs=signs).matrix(),
    )
    more: dict[str, Any] = {"fixed": ("signs",), "form": {"upper": formulas.packed}, "tolerance": SOLVED}
    bars, flops = [Bar(SOLVE, *bar)], 6.0 * math.prod(shape) * shape[-1]
    return row(name, draw, ours, {SOLVE: formulas.cayley}, bars, flops, reference=formulas.cayley_checked, **more)


def exponential() -> Iterator[Row]:
    for dtype in (torch.float32, torch.complex64):
        for n in (190, 512):
            yield of_skew(f"exponential {n}", (n, n), dtype)
    for count, n in ((4096, 4), (512, 16)):
        yield of_skew(f"exponential batch {count}x{n}", (count, n, n), torch.float32)


def of_skew(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Row:
    """exp(A), ||A|| near pi: twice the spread of its entries times sqrt n."""
    peers: dict[str, Call] = {
        SERIES: lambda p: torch.linalg.matrix_exp(formulas.skew(p)),  # its gradient: an exponential of size 2 n
        EIGH: lambda p: formulas.exponential(formulas.skew(p))[0],
    }
    bars = [Bar(SERIES, 2.0, 4.0, (SERIES,)), Bar("best torch", 1.5, 2.0, (SERIES, EIGH))]
    if dtype.is_complex:
        peers[CLOSED] = formulas.exponential_closed
        bars.append(Bar("eigh, closed form", 1.0, 1.5, (CLOSED,)))
    draw = lambda: {"upper": randn(shape, dtype=dtype) * 1.5 / shape[-1] ** 0.5}
    return row(
        name + (" complex" if dtype.is_complex else ""),
        draw,
        lambda upper: it.Exponential(upper).matrix(),
        peers,
        bars,
        23 * 2.0 * (4 if dtype.is_complex else 1) * math.prod(shape) * shape[-1],
        form={"upper": formulas.packed},
        reference=formulas.exponential_closed,
        # the gradient of matrix_exp loses digits at n = 512, where the cotangent is much larger than A
        tolerance=(2e-5, 1e-3),
    )


def rotation() -> Iterator[Row]:
    """A pair of directions for all rows or for each, or the matrix, by rows of the identity: row i of R is R^T e_i."""
    rotate = formulas.rotate_by_reflections
    rotated = lambda start, end, x: it.Rotation(start, end).apply(x)
    for name, shape, rows, bar in (
        (f"rotation 512/B{B}", (512,), (B, 512), (1.2, 2.0)),
        ("rotation of each of 1600 rows 256", (1600, 256), (1600, 256), (2.0, 4.0)),
    ):
        draw = lambda shape=shape, rows=rows: {"start": randn(shape), "end": randn(shape), "x": randn(rows)}
        flops, bars = 34.0 * math.prod(rows) + 30.0 * math.prod(shape), [Bar("best torch", *bar)]
        yield row(name, draw, rotated, {"torch reflections": rotate}, bars, flops)
    turned = {"torch reflections": lambda start, end: rotate(end, start, torch.eye(256).to(start))}
    draw, matrix = lambda: {"start": randn(256), "end": randn(256)}, lambda start, end: it.Rotation(start, end).matrix()
    bars, flops = [Bar("best torch", 1.2, 2.0)], 17.0 * 256**2
    yield row("rotation matrix 256", draw, matrix, turned, bars, flops)


def bounded_svd() -> Iterator[Row]:
    def draw(n: int, *rows: int) -> Draw:
        arrays = lambda: {"u": it.Dense.random(n).weight, "logits": randn(n), "v": it.Dense.random(n).weight}
        return lambda: arrays() | ({"x": randn(*rows, n)} if rows else {})

    bars = [Bar("best torch", 1.3, 1.5)]
    ours = lambda u, logits, v: it.BoundedSvd(u, logits, v, margin=MARGIN)
    matrix: Call = lambda u, logits, v: formulas.bounded_svd(u, logits, v, MARGIN)
    for n in (128, 512):
        own: Call = lambda *given: ours(*given).matrix()
        yield row(f"bounded svd matrix {n}", draw(n), own, {"torch": matrix}, bars, 6.0 * n**3)
    on_rows: dict[str, Call] = {
        "torch factors": lambda u, logits, v, x: ((x @ v) * formulas.sigma(logits, MARGIN)) @ u.mT
    }
    own = lambda *given: ours(*given[:-1]).apply(given[-1])
    yield row(f"bounded svd 512/B{B}", draw(512, B), own, on_rows, bars, 12.0 * 512**2 * B)


def stepped(prepared: Callable[..., formulas.Step]) -> Call:
    """A function of prepared arguments, and of rows."""
    return lambda *given: prepared(*given[:-1])(given[-1])


def kronecker_factors(dtype: torch.dtype, *rows: int) -> dict[str, Tensor]:
    factors = {f"W{f}": it.Dense.random(2, dtype=dtype).weight for f in range(9)}
    return factors | ({"x": randn(*rows, 512, dtype=dtype)} if rows else {})


def kronecker() -> Iterator[Row]:
    peers: dict[str, Call] = {"torch einsum": lambda *given: formulas.kronecker_einsum(given[:-1], given[-1])}
    ours, bars = stepped(lambda *factors: it.Kronecker(factors).apply), [Bar("einsum", 4.0, 8.0)]
    for dtype, name, flops in ((torch.float32, "", 12.0), (torch.complex64, " complex", 48.0)):
        draw, name = partial(kronecker_factors, dtype, B), f"kronecker apply 2^9/B{B}{name}"
        yield row(name, draw, ours, peers, bars, flops * 512 * 9 * B)


def fourier_factors(n: int, *rows: int) -> dict[str, Tensor]:
    op, x = it.FourierProduct.random(n), {"x": randn(*rows, n, dtype=torch.complex64)} if rows else {}
    return {"phases": op.phases, "vectors": op.vectors, "permutation": op.permutation} | x


def fourier_flops(n: int) -> float:
    return 4.0 * (10 * n * math.log2(n) + 50 * n)


def fourier() -> Iterator[Row]:
    ours, bars = stepped(lambda *arrays: it.FourierProduct(*arrays).apply), [Bar("torch.fft", 4.0, 10.0)]
    peers = {"torch fft": stepped(formulas.fourier_step)}
    for n in (512, 500):
        draw, flops = partial(fourier_factors, n, B), fourier_flops(n) * B
        yield row(f"fourier apply {n}/B{B} complex", draw, ours, peers, bars, flops, fixed=("permutation",))


def mesh() -> Iterator[Row]:
    for dtype in (torch.float32, torch.complex64):
        for depth in (2, 32, None):
            yield meshed(formulas.Mesh(512, depth), dtype)


def meshed(kind: formulas.Mesh, dtype: torch.dtype) -> Row:
    draw = lambda: kind.random(dtype) | {"x": randn(B, kind.n, dtype=dtype)}
    ours, peers = stepped(lambda *angles: kind.operator(*angles).apply), kind.peers()
    flops, theirs = (36.0 if dtype.is_complex else 12.0) * kind.n * kind.layers * B, map(stepped, peers.values())
    name, bars = f"mesh apply {mesh_label(kind, dtype)}", [Bar("torch", 4.0, 10.0)]
    return row(name, draw, ours, dict(zip(peers, theirs, strict=True)), bars, flops)


def mesh_label(kind: formulas.Mesh, dtype: torch.dtype) -> str:
    return f"{kind.n}/{f'L{kind.depth}' if kind.depth else 'fft'}/B{B}{' complex' if dtype.is_complex else ''}"
