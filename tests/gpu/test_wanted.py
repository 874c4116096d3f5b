"""Gradients that nobody wants take no dispatches, and the others have the bits that they have beside them."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

import isometry as iso
import isometry.torch as it
from gpu_tensors import B, D, N, T, draw, score
from test_delta import NAMES as DELTA
from test_delta import called

COMPLEX = torch.complex64


class Case(NamedTuple):
    """A function of tensors of these shapes."""

    shapes: dict[str, tuple[int, ...]]
    run: Callable[..., torch.Tensor]
    dtype: torch.dtype = torch.float32
    #: what comes with other gradients
    beside: tuple[str, ...] = ()


def delta(gate):
    shapes = (1, 70, 1, 6), (1, 70, 1, 6), (1, 70, 2, 5), (1, 70, 2), gate, (1, 2, 6, 5)
    own = {name: shape for name, shape in zip(DELTA, shapes, strict=True) if shape}
    return Case(own, lambda **given: called(given, it.delta_rule)[0], beside=("v", "initial_state"))


def cell(gates, run):
    shapes = {"x": (T, B, D), "w": (*gates, N, N), "u": (*gates, N, D), "b": (*gates, N), "h0": (B, N)}
    return Case(shapes, lambda x, w, u, b, h0: run(x, w, u, b, h0=h0))


PHASES = {"vectors": (N, 3), "phases": (N,), "x": (B, N)}
CASES = {
    "delta": delta(None),
    "delta, gates of heads": delta((1, 70, 2)),
    "delta, gates of rows": delta((1, 70, 2, 6)),
    "recurrence": Case(
        {**PHASES, "x": (T, B, D), "v": (N, D), "bias": (N,), "h0": (B, N), "activation_bias": (N,)},
        lambda vectors, phases, x, v, **rest: it.recurrence(
            it.Householder(vectors, phases=phases), x, v, activation="modrelu", **rest
        ),
        COMPLEX,
    ),
    "gru": cell((3,), it.gru),
    "lstm": cell((4,), lambda *given, h0: it.lstm(*given, h0=h0)[0]),
    "rum": cell((2,), lambda x, w, u, b, h0: it.rum(x, w.view(-1, N), u.view(-1, D), b.view(-1), u[0], None, h0=h0)[0]),
    "apply": Case(PHASES, lambda x, **of: it.Householder(**of)(x), COMPLEX),
    "adjoint": Case(PHASES, lambda x, **of: it.Householder(**of).H(x), COMPLEX),
    "cayley": Case({"upper": (66,), "phases": (12,), "x": (B, 12)}, lambda x, **of: it.Cayley(**of)(x), COMPLEX),
}


def drawn(case, rng):
    real = ("phases", "activation_bias")
    return {n: draw(rng, *s, dtype=torch.float32 if n in real else case.dtype) / 4 for n, s in case.shapes.items()}


def pulled(case, given, wanted):
    """The wanted gradients, and the dispatches that they took."""
    at = {name: t.clone().requires_grad_(name in wanted) for name, t in given.items()}
    with it.use_backend("gpu"):
        out = score(case.run(**at))
        before = iso.gpu.statistics()["dispatches"]
        out.backward()
    return {name: at[name].grad for name in wanted}, iso.gpu.statistics()["dispatches"] - before


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_that_is_not_wanted_takes_nothing(name, seed):
    case = CASES[name]
    given = drawn(case, seed)
    expected, most = pulled(case, given, list(given))
    for own in given:
        others = [name for name in given if name != own]
        for wanted in ([own], others):
            found, count = pulled(case, given, wanted)
            assert all(torch.equal(found[name], expected[name]) for name in wanted), wanted
            assert count <= most - (wanted == [own] or own not in case.beside), (wanted, count, most)


def test_a_gradient_alone_takes_no_more_than_the_values(seed):
    """That of W^H x in x is W times its cotangent, that of W in the phases comes from W."""
    case = CASES["adjoint"]
    given = drawn(case, seed)
    op = it.Householder(given["vectors"], phases=given["phases"])
    for wanted, run, value in (
        ("x", case.run, lambda: op(given["x"])),
        ("phases", lambda x, **rest: it.Householder(**rest).matrix() + 0 * x[0], op.matrix),
    ):
        before = iso.gpu.statistics()["dispatches"]
        with it.use_backend("gpu"):
            value()
        most = iso.gpu.statistics()["dispatches"] - before
        assert pulled(case._replace(run=run), given, [wanted])[1] <= most, wanted
