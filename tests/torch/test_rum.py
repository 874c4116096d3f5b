"""GORU and RUM: degenerate rotations, a long memory, gradients."""

from functools import reduce

import pytest
import torch
from torch.func import vmap

import isometry.torch as it
from derivatives import draw, gradients, same, score
from isometry import _core
from registry.cells import CELLS, CellCase
from support.cells import TorchCell

N = 4


def point(rng, variant="rotations", **sizes):
    """x, w, u, b, U_e, b_e, h0 and, with a memory, r0."""
    case = CellCase(CELLS["rum"], variant)
    return TorchCell(case).function(case.draw(rng, **sizes))[1]


@pytest.mark.parametrize("lam", [0, 1])
@pytest.mark.parametrize("eta", [None, 1.0])
def test_a_zero_embedding_turns_nothing_and_has_no_gradient(lam, eta, seed):
    """Black pixels: with x = 0 and b_e = 0 the rotation is the identity, whatever tau; kernel and formula agree."""
    x, w, u, b, embed, _, h0 = point(seed)
    at = [torch.zeros_like(x), w, u, b, embed, torch.zeros(N, dtype=torch.float64), h0]
    f = lambda *a: it.rum(*a[:6], h0=a[6], lam=lam, eta=eta)[0]
    found, again = gradients(f, at), gradients(f, at, create_graph=True)
    same(found, again, "gradient")
    assert all(t.isfinite().all() for t in found)
    assert not found[2].any() and not found[4].any()
    h = h0
    for state in f(*at):
        keep = torch.sigmoid((h @ w.mT + b)[:, :N])
        h = keep * h + (1 - keep) * h.relu()
        h = h if eta is None else eta * h / h.norm(dim=-1, keepdim=True)
        same(state, h, "states")


@pytest.mark.parametrize("lam", [0, 1])
@pytest.mark.parametrize("size", [-1.0, 1.0, -1e-200, 0.0])
def test_kernel_and_formula_agree_on_degenerate_pairs(size, lam, seed):
    """tau opposite to e, along it, and of no normal length."""
    x, _, _, _, embed, embed_bias, h0 = point(seed)
    u, b = (torch.cat((torch.ones_like(t), size * t)) for t in (embed, embed_bias))
    at = [x, torch.zeros(2 * N, N, dtype=torch.float64), u, b, embed, embed_bias, h0]
    f = lambda *a: it.rum(*a[:6], h0=a[6], lam=lam)[0]
    found, again = gradients(f, at), gradients(f, at, create_graph=True)
    assert all(t.isfinite().all() for t in found)
    same(f(*at), vmap(f)(*(t[None] for t in at))[0], "states")
    same(found, again, "gradient")


def test_the_zero_state_stays_zero_without_a_gradient():
    x, w = torch.zeros(3, 2, 2), torch.ones(8, 4)
    u, b, embed = torch.ones(8, 2), torch.ones(8), torch.ones(4, 2)
    f = lambda *a: it.rum(*a, None, eta=2.0)[0]
    assert not f(x, w, u, b, embed).any()
    for create_graph in (False, True):
        at = [t.requires_grad_() for t in (x, w, u, b, embed)]
        found = torch.autograd.grad(f(*at).sum(), at, create_graph=create_graph)
        assert not any(t.any() for t in found)


def test_a_long_memory_stays_orthogonal_and_is_undone(seed):
    """1,000 rotations in single precision; tau does not depend on h, so that no other error comes back."""
    x, w, u, b, embed, embed_bias, h0 = point(seed, n=16, steps=1000, d=3, single=True)
    r0 = torch.eye(16).expand(2, 16, 16).clone().requires_grad_()
    _, last = it.rum(x, 0 * w, u, b, embed, embed_bias, h0=h0, r0=r0, lam=1, eta=1.0)
    assert it.orthogonality_error(last.detach()).max() < 20
    # R_T Q_T^T ... Q_1^T = R_0, as the memory itself is turned back
    undone = torch.autograd.grad((last * last.detach()).sum(), r0)[0]
    assert (undone - r0).abs().max() < 1000 * torch.finfo(torch.float32).eps / 2


def test_gradients_of_the_memory_alone(seed):
    """A loss of r_last only, and one of the states only: the cotangents of the other are zeros."""
    at = point(seed, "memory")
    at = [t.requires_grad_() for t in at]
    both = [
        torch.autograd.grad(score(it.rum(*at[:6], h0=at[6], r0=at[7], lam=1)[k]), at, allow_unused=True) for k in (0, 1)
    ]
    states, last = it.rum(*at[:6], h0=at[6], r0=at[7], lam=1)
    together = torch.autograd.grad(score(states) + score(last), at)
    same(together, [a + b for a, b in zip(*both, strict=True)], "gradient")


def test_absent_biases_are_zero(seed):
    x, w, u, b, embed, embed_bias, _ = point(seed)
    for some in ((None, embed_bias), (b, None), (None, None)):
        zeros = [torch.zeros_like(t) if s is None else s for s, t in zip(some, (b, embed_bias), strict=True)]
        same(it.rum(x, w, u, some[0], embed, some[1])[0], it.rum(x, w, u, zeros[0], embed, zeros[1])[0])


@pytest.mark.parametrize("reset", ["before", "after"])
def test_an_operator_on_rows_is_applied_step_by_step(reset, seed):
    """The GRU with its matrix, for a product of many factors, of which the matrix is never formed."""
    factors = [draw(seed, 2, 2) for _ in range(7)]
    route = lambda stem, *arrays: _core.recurrence_route(stem, arrays, 3, 2, True)
    assert route("kronecker", *[t.numpy() for t in factors]) == "factored"
    assert route("householder", draw(seed, 32, 2).numpy(), None, None) == "dense"
    shapes = [(3, 2, 3), (2, 128, 128), (3, 128, 3), (3, 128), (2, 128)]
    at = [0.1 * draw(seed, *shape) for shape in shapes] + factors

    def ours(x, w, u, b, h0, *factors):
        return it.goru(it.Kronecker(factors), x, w, u, b, h0=h0, reset=reset, lengths=[1, 3])

    def theirs(x, w, u, b, h0, *factors):
        w = torch.cat((w, reduce(torch.kron, factors)[None]))
        return it.gru(x, w, u, b, h0=h0, reset=reset, lengths=[1, 3])

    same(ours(*at), theirs(*at), "states")
    same(gradients(ours, at), gradients(theirs, at), "gradient")


OP, W = it.Householder(torch.ones(4, 1)), torch.zeros(2, 4, 4)
#: Transitions, and the matrices of the gates.
MISTAKES = [
    (torch.eye(4), W, TypeError, "transition must be an operator"),
    (None, W, TypeError, "transition must be an operator"),
    (OP, torch.zeros(3, 4, 4), ValueError, r"w must have shape \(2, n, n\) .* of z and r"),
    (it.Householder(torch.ones(3, 1)), W, ValueError, r"transition must have shape \(n, n\) = \(4, 4\)"),
    (it.Householder(torch.ones(2, 4, 1)), W, ValueError, "transition must be one"),
    (it.Dense(torch.ones(4, 3)), W, ValueError, "transition must be square"),
    (OP.to(torch.complex64), W, ValueError, "transition must be real"),
    (OP.to(torch.float64), W, TypeError, "transition is float64"),
]


def test_refusals():
    for transition, w, error, words in MISTAKES:
        with pytest.raises(error, match=words):
            it.goru(transition, torch.zeros(3, 2, 2), w, torch.zeros(3, 4, 2), torch.zeros(3, 4))
