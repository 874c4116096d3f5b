"""Tensors and cells with `backend="gpu"`: where they are computed, and the backend that a keyword or a block names."""

import numpy as np
import pytest
import torch
from torch.func import grad, jvp, vmap

import isometry.torch as it
from gpu_tensors import B, D, N, T, close, draw, same, score
from isometry.gpu._coverage import has_cell
from kernel_calls import recorded
from registry.cells import CASES
from support.cells import TorchCell

# ---------------------------------------------------------------- the numbers


def test_a_recurrence_on_the_gpu_takes_the_object_where_the_cpu_takes_its_matrix(seed, calls):
    u, x, v = draw(seed, N, N), draw(seed, 8 * T, B, D), draw(seed, N, D)
    same(lambda u: it.recurrence(it.Householder(u), x, v), (u,))
    assert calls.of("recurrence") == [("householder", "gpu"), ("dense", "cpu")]
    assert calls.of("recurrence_vjp") == [("householder", "gpu"), ("dense", "cpu")]
    assert calls.of("operator_matrix") == [("householder", "cpu")]


# ---------------------------------------------------------------- derivatives


@pytest.mark.parametrize("kind", ["apply", "recurrence"])
def test_transforms(kind, seed):
    """The transforms of torch.func inside of a block."""
    u, x = draw(seed, N, 3), draw(seed, T, B, N)
    f = {
        "apply": lambda u: it.Householder(u).apply(x),
        "recurrence": lambda u: it.recurrence(it.Householder(u), x, torch.eye(N)),
    }[kind]
    for transformed in (
        lambda u: grad(lambda u: score(f(u)))(u),
        lambda u: jvp(f, (u,), (torch.ones_like(u),))[1],
        lambda u: vmap(f)(torch.stack((u, 2 * u))),
        lambda u: vmap(grad(lambda u: score(f(u))))(torch.stack((u, 2 * u))),
    ):
        expected = transformed(u)
        with it.use_backend("gpu"):
            close(transformed(u), expected)


# ---------------------------------------------------------------- where


class Own(it.Operator):
    """An operator of a user's, by its matrix alone."""

    def __init__(self, op):
        super().__init__(shape=op.shape, dtype=op.dtype)
        self.op = op

    def matrix(self, *, backend=None, check_finite=True):
        return self.op.matrix(backend=backend, check_finite=check_finite)


def of_all(rng):
    """Computations that take the keyword, and a tensor that they have a gradient of."""
    u, x = draw(rng, N, 3).requires_grad_(), draw(rng, T, B, N)
    op, v = it.Householder(u), torch.eye(N)
    turned = (op @ it.Mesh(draw(rng, N - 1), n=N, layers=2)).H
    stack, own = it.Cayley(draw(rng, B, 1).requires_grad_()), Own(op)
    return {
        "apply": (lambda **k: op.apply(x, **k), u),
        "call": (lambda **k: op(x, **k), u),
        "apply_adjoint": (lambda **k: op.apply_adjoint(x, **k), u),
        "matrix": (lambda **k: op.matrix(**k), u),
        "complex rows": (lambda **k: op.apply(x + 0j, **k), u),
        "product": (lambda **k: turned.apply(x, **k), u),
        "matrix of a product": (lambda **k: turned.matrix(**k), u),
        "matrix of a user's": (lambda **k: (own @ op).matrix(**k), u),
        "stack": (lambda **k: stack.apply(x[..., :2], **k), stack.upper),
        "matrices": (lambda **k: stack.matrix(**k), stack.upper),
        "recurrence": (lambda **k: it.recurrence(op, x, v, **k), u),
        "recurrence, product": (lambda **k: it.recurrence(turned, x, v, **k), u),
        "recurrence, a user's": (lambda **k: it.recurrence(own, x, v, **k), u),
    }


each_call = pytest.mark.parametrize("name", of_all(np.random.default_rng(0)))


@each_call
def test_the_keyword_wins_over_the_block(name, seed, calls):
    """And a gradient is computed where the value was, inside of a block or behind it."""
    call, at = of_all(seed)[name]
    for block, keyword in (("cpu", None), ("cpu", "gpu"), ("gpu", None), ("gpu", "cpu"), ("gpu", "gpu")):
        with it.use_backend(block):
            out = call(backend=keyword)
        expected = {keyword or block}
        assert calls.taken().backends == expected
        (bar,) = torch.autograd.grad(score(out), at, retain_graph=True)
        assert calls.taken().backends == expected
        with it.use_backend("cpu" if expected == {"gpu"} else "gpu"):
            (again,) = torch.autograd.grad(score(out), at)
        assert calls.taken().backends == expected
        assert torch.equal(bar, again)


# ---------------------------------------------------------------- what is left to the CPU, or refused


def test_activations_are_left_to_the_cpu(seed, calls):
    z = draw(seed, 3, N).requires_grad_()
    with it.use_backend("gpu"):
        out = it.activate(z, "tanh")
        out.sum().backward()
    assert torch.equal(out, it.activate(z, "tanh"))
    assert calls.backends == {"cpu"}


OPTIONS = {
    "lengths": {"lengths": [2, T, 0], "reverse": True},
    "last": {"output": "last", "lengths": [T, 0, 1]},
    "checkpoint": {"checkpoint": "sqrt"},
}


def function(case, rng, single=True, **options):
    return TorchCell(case).function(case.draw(rng, N, T, B, D, single=single), **options, **case.options())


#: Without blocks, which are the members of an ensemble: the laws compare their numbers.
SINGLE = [case for case in CASES if has_cell(case.cell.stem) and case.variant != "by blocks"]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("cell", SINGLE, ids=str)
def test_cells_are_those_of_the_cpu(cell, option, seed, monkeypatch):
    """Values, gradients, and where they were computed; what else there is the laws say on this backend."""
    if cell.memory and option == "checkpoint":
        return
    calls = recorded(monkeypatch)
    same(*function(cell, seed, **OPTIONS[option]))
    stems = (cell.cell.stem, "gru") if cell.cell.stem == "goru" else (cell.cell.stem,)  # by W it is a GRU
    taken = [c.backend for c in calls if c.kernel.removesuffix("_vjp") in stems]
    assert taken == ["gpu", "gpu", "cpu", "cpu"]


@pytest.mark.parametrize("cell", [c for c in CASES if c.cell.activations], ids=str)
def test_cells_take_single_precision_and_no_starts(cell, seed):
    starts = {"starts": np.ones((T, B), bool)}
    for refused in ({"single": False}, starts):
        if cell.memory and refused is starts:  # whose marks are computed by the formula
            continue
        f, at = function(cell, seed, **refused)
        with (
            it.use_backend("gpu"),
            pytest.raises((TypeError, NotImplementedError), match="starts|float32 and complex64"),
        ):
            f(*at)
        f, at = function(cell, seed, **refused, backend="cpu")
        with it.use_backend("gpu"), torch.no_grad():
            assert f(*at).isfinite().all()
