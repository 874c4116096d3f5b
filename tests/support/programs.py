"""Calls of the package as functions of tensors, each with a point: what transforms, tracers and graphs are tried on."""

import torch
from torch.func import functional_call

import isometry.torch as it
from derivatives import draw
from registry.cells import CASES, CELLS, CellCase
from support.cells import TorchCell

N, STEPS, BATCH, FEATURES = 4, 3, 2, 2


def operators(rng):
    """One call of every kind, by factors, by W and by rows, of stacks and of products."""
    x = draw(rng, 5, N)
    u, upper, weight = draw(rng, N, 2), draw(rng, N * (N - 1) // 2), draw(rng, N, N)
    return {
        "apply": (lambda u, x: it.Householder(u).apply(x), [u, x]),
        "adjoint": (lambda u, x: it.Householder(u).apply_adjoint(x), [u, x]),
        "apply through W": (lambda a, x: it.Cayley(a).apply(x), [upper, x]),
        "matrix": (lambda a: it.Cayley(a).matrix(), [upper]),
        "matrix of reflections": (lambda u: it.Householder(u).matrix(), [u]),
        "a matrix": (lambda w, x: it.Dense(w).apply(x), [weight, x]),
        "factors": (lambda a, b, x: it.Kronecker([a, b]).apply(x), [draw(rng, 2, 2), draw(rng, 2, 2), x]),
        "a stack": (lambda u, x: it.Householder(u).apply(x), [draw(rng, 3, N, 2), draw(rng, 2, 3, N)]),
        "a product": (lambda u, a, x: (it.Householder(u) @ it.Cayley(a)).apply(x), [u, upper, x]),
    }


def constants(rng):
    """Calls that have constants of their own, or results of another kind."""
    x, v = draw(rng, 3, 6), draw(rng, 6)
    return {
        "a sign": (lambda u, x: it.Householder(u, sign=0.5).apply(x), [draw(rng, 6, 2), x]),
        "phases": (lambda u, p: it.Householder(u, phases=p).matrix(), [draw(rng, 6, 2), v]),
        "trapezoid": (
            lambda u, x: it.Householder.from_trapezoid(u).apply_adjoint(x),
            [draw(rng, 4, 6, 6), draw(rng, 3, 4, 6)],
        ),
        "signs": (lambda a, x: it.Cayley(a, signs=torch.ones_like(x[0])).apply(x), [draw(rng, 15), x]),
        "complex": (lambda a, d, p: it.Cayley(a + 0j, diagonal=d, phases=p).matrix(), [draw(rng, 15), v, 2 * v]),
        "exponential": (lambda a, x: it.Exponential(a)(x), [draw(rng, 15), x]),
        "mesh": (lambda t, x: it.Mesh(t, n=6, layers=3)(x), [draw(rng, 8), x]),
        "matrix of a mesh": (lambda t: it.Mesh(t, n=8, layers=3, layout="fft").matrix(), [draw(rng, 12)]),
        "rotation": (lambda a, b, x: it.Rotation(a, b)(x), [v, draw(rng, 6), x]),
        "bounded svd": (
            lambda u, p, v, x: it.BoundedSvd(u, p, v, margin=0.1)(x),
            [draw(rng, 4, 3), draw(rng, 3), draw(rng, 6, 3), draw(rng, 5, 6)],
        ),
        "real form": (lambda w: it.real_matrix(w + 0j), [x]),
        "error": (it.orthogonality_error, [draw(rng, 4, 3, 3)]),
    }


def sequences(rng):
    """Every cell, with transitions of every kind, and a memory."""
    sizes = N, STEPS, BATCH, FEATURES
    found = {
        str(case): TorchCell(case).function(case.draw(rng, *sizes))
        for case in CASES
        if case.plain or case.variant in ("by W", "by rows", "memory")
    }
    of_lengths = TorchCell(CellCase(CELLS["recurrence"], "by W"))
    found["lengths"] = of_lengths.function(of_lengths.case.draw(rng, *sizes), lengths=[1, 3], reverse=True)
    return found


def functions(rng):
    """The functions of linalg, activations, the delta rule, and both adapters."""
    a, tau, x, z = draw(rng, 5, 3), draw(rng, 3), draw(rng, 5, 2), draw(rng, 3, 8)
    layer = torch.nn.Linear(8, 4, dtype=torch.float64)
    oft, hra = it.adapters.OFT(layer, block_size=4), it.adapters.HRA(layer, r=2)
    tokens = [draw(rng, 2, 3, 1, 4), 0.5 * draw(rng, 2, 3, 1, 4), draw(rng, 2, 3, 2, 4), draw(rng, 2, 3, 2)]
    both = lambda out: torch.cat([t.flatten() for t in out])
    return {
        "product": (lambda a, tau: it.linalg.householder_product(a, tau), [a, tau]),
        "ormqr": (lambda a, tau, x: it.linalg.ormqr(a, tau, x, transpose=True), [a, tau, x]),
        "geqrf": (lambda a: both(it.linalg.geqrf(a)), [a]),
        "activate": (lambda z, b: it.activate(z, "modrelu", bias=b), [z, draw(rng, 8)]),
        "delta": (lambda q, k, v, beta: both(it.delta_rule(q, k, v, beta)), tokens),
        "packed delta": (
            lambda q, v: it.delta_rule(q[:1], tokens[1][:1], v[:1], tokens[3][:1], cu_seqlens=[0, 1, 3])[0],
            tokens[::2],
        ),
        "oft": (lambda p, z: functional_call(oft, {"upper": p}, (z,)), [draw(rng, 2, 6), z]),
        "hra": (lambda p, z: functional_call(hra, {"vectors": p}, (z,)), [draw(rng, 8, 2), z]),
    }


def programs(rng):
    return {**operators(rng), **sequences(rng), **functions(rng)}
