"""One large problem each, in which threads can share nothing but its arithmetic: a head of the delta rule, a
factorisation and its gradient, one matrix of reflections. Their peers are the groups' own; here they are timed alone.
"""

from collections.abc import Iterator
from functools import cache, partial

import torch
from torch import Tensor, randn

import isometry.torch as it
from harness.row import Candidate, Results, Row
from rows.torch import formulas
from rows.torch.delta import BACKWARD, FORWARD, chunked, drawn, ours
from rows.torch.dropin.linalg import factorisation
from rows.torch.operators import draw_vectors
from rows.torch.sides import row

TOKENS = 4096
N, M, MANY = 1024, 512, 2000


def rows() -> Iterator[Row]:
    draw = partial(drawn, TOKENS, 1)
    peers = {"transformers": partial(chunked, sliced=False)}
    yield row(f"delta rule, one head, T{TOKENS}", draw, ours, peers, [], FORWARD * TOKENS, gradients=False)
    yield row("delta rule, one head, backward too", draw, ours, peers, [], (FORWARD + BACKWARD) * TOKENS)
    yield factorisation(1, 1024, 256)
    factors = lambda x: it.linalg.geqrf(x)[0]
    draw, more = lambda: {"x": randn(1, 1024, 256)}, {"reference": factors, "tolerance": (1e-3, 1e-3)}
    yield row("geqrf 1x1024x256, backward too", draw, factors, {}, **more)  # type: ignore[arg-type]
    draw, pick, wy = draw_vectors(N, M), {"vectors": torch.tril}, "torch compact WY"
    matrix, apply = lambda u: it.Householder(u).matrix(), lambda u, x: it.Householder(u).apply(x)
    yield row(f"householder matrix {N}/{M}", draw, matrix, {wy: formulas.wy_matrix}, pick=pick)
    draw = draw_vectors(N, M, MANY)
    yield row(f"householder apply {N}/{M}/B{MANY}", draw, apply, {wy: formulas.wy_apply}, pick=pick)
    yield from_matrix(1000)


def from_matrix(n: int) -> Row:
    @cache
    def orthogonal() -> Tensor:
        torch.manual_seed(0)
        return torch.linalg.qr(randn(n, n, dtype=torch.float64))[0].float()

    def run() -> Tensor:
        return it.Householder.from_matrix(orthogonal()).vectors

    def results() -> Results:
        return {"value": it.Householder.from_matrix(orthogonal()).matrix()}

    # rounded to single precision, the matrix is orthogonal to some eps n^(1/2)
    exact = lambda: {"value": orthogonal().double()}
    return Row(f"Householder.from_matrix {n}", Candidate("isometry", run, results), [], exact, tolerance=(1e-4, 1e-4))
