"""`it.rum`: the textbook loop, degenerate rotations, every mode of torch, lengths and directions, threads, refusals."""

import numpy as np
import pytest
import torch
from torch.func import vmap

import derivatives
import isometry.torch as it
import tolerance
from derivatives import (
    TRANSFORMS,
    draw,
    every_member,
    every_order,
    gradients,
    same,
    same_dual_numbers_when_compiled_before,
    same_when_compiled,
    score,
    transform_agrees,
)

N, STEPS, BATCH, FEATURES = 4, 3, 2, 2
KINDS = {"rotations": {}, "eta": {"eta": 1.3}, "memory": {"lam": 1}, "memory with eta": {"lam": 1, "eta": 0.8}}
OPTIONS = {
    "plain": {},
    "lengths": {"lengths": [3, 2]},
    "unsorted lengths": {"lengths": [1, 3]},
    "reverse": {"reverse": True},
    "reverse with lengths": {"reverse": True, "lengths": [2, 3]},
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_option = pytest.mark.parametrize("option", OPTIONS)
each_activation = pytest.mark.parametrize("name", ["tanh", "relu", "identity", "oplu", "modrelu", "modrelu_realrep"])


def problem(rng, kind="rotations", name="tanh", dtype=np.float64, sizes=(N, STEPS, BATCH, FEATURES), **keywords):
    """States, and the memory below them, as a function of x, w, u, b, U_e, b_e, h0, r0 and the activation's bias."""
    n, steps, batch, features = sizes
    shapes = [(steps, batch, features), (2 * n, n), (2 * n, features), (2 * n,), (n, features), (n,), (batch, n)]
    at = [draw(rng, *shape, dtype=dtype) / (1 if len(shape) < 2 else n**0.5) for shape in shapes]
    memory = "lam" in KINDS[kind]
    if memory:
        at.append(draw(rng, batch, n, n, dtype=dtype) / n**0.5)
    units = {"modrelu": n, "modrelu_realrep": n // 2}.get(name)
    if units is not None:
        at.append(0.1 + draw(rng, units, dtype=dtype).abs())

    def f(x, w, u, b, embed_weight, embed_bias, h0, *rest):
        given = {"h0": h0, "r0": rest[0] if memory else None, "activation": name, **KINDS[kind], **keywords}
        own = rest[-1] if units is not None else None
        states, last = it.rum(x, w, u, b, embed_weight, embed_bias, activation_bias=own, **given)
        return states if last is None else torch.cat((states, last.movedim(1, 0)))

    return f, at


def rotation(a, b):
    """R = I + K + K^2 / (1 + c) with K = bh ah^T - ah bh^T, in NumPy."""
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    k = np.outer(b, a) - np.outer(a, b)
    return np.eye(len(a)) + k + k @ k / (1 + a @ b)


def textbook(arguments, kind, name):
    """Every sequence alone, step by step, with dense rotations, in NumPy."""
    x, w, u, b, embed_weight, embed_bias, h0, *rest = (t.detach().numpy() for t in arguments)
    own, eta, n = torch.from_numpy(rest[-1]) if name.startswith("modrelu") else None, KINDS[kind].get("eta"), w.shape[1]
    states, memory = np.empty((*x.shape[:2], n)), "lam" in KINDS[kind]
    last = rest[0].copy() if memory else np.empty((x.shape[1], 0, n))
    for k in range(x.shape[1]):
        h = h0[k]
        for t in range(x.shape[0]):
            keep, tau = np.split(w @ h + u @ x[t, k] + b, 2)
            keep, e = 1 / (1 + np.exp(-keep)), embed_weight @ x[t, k] + embed_bias
            r = rotation(e, tau)
            if memory:
                r = last[k] = last[k] @ r
            c = it.activate(torch.from_numpy(e + r @ h), name, bias=own).numpy()
            h = keep * h + (1 - keep) * c
            h = states[t, k] = h if eta is None else eta * h / np.linalg.norm(h)
    return torch.from_numpy(np.concatenate((states, last.swapaxes(0, 1))))


@each_kind
@each_activation
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["single", "double"])
def test_states_are_those_of_the_textbook(dtype, name, kind, seed):
    f, at = problem(seed, kind, name, dtype, (6, 5, 3, 2))
    wide = [t.double() for t in at]
    found, expected = f(*at), textbook(wide, kind, name)
    assert found.dtype == at[0].dtype
    # each step turns by a rotation that its own state determines, which multiplies what came before
    tolerance.close(found, expected, 10 * tolerance.sequence(dtype, 6, 5), "states")
    bars, wide_bars = gradients(f, at), gradients(f, wide)
    for bar, wide_bar in zip(bars, wide_bars, strict=True):
        tolerance.close(bar, wide_bar, 100 * tolerance.sequence_gradient(dtype, 6, 5), "gradient")


# ---------------------------------------------------------------- degenerate rotations, a long memory


@pytest.mark.parametrize("lam", [0, 1])
@pytest.mark.parametrize("eta", [None, 1.0])
def test_a_zero_embedding_turns_nothing_and_has_no_gradient(lam, eta, seed):
    """Black pixels: with x = 0 and b_e = 0 the rotation is the identity, whatever tau; kernel and formula agree."""
    _, (x, w, u, b, embed, _, h0) = problem(seed)
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
    _, (x, _, _, _, embed, embed_bias, h0) = problem(seed)
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
    _, (x, w, u, b, embed, embed_bias, h0) = problem(seed, dtype=np.float32, sizes=(16, 1000, 2, 3))
    r0 = torch.eye(16).expand(2, 16, 16).clone().requires_grad_()
    _, last = it.rum(x, 0 * w, u, b, embed, embed_bias, h0=h0, r0=r0, lam=1, eta=1.0)
    assert it.orthogonality_error(last.detach()).max() < 20
    # R_T Q_T^T ... Q_1^T = R_0, as the memory itself is turned back
    undone = torch.autograd.grad((last * last.detach()).sum(), r0)[0]
    assert (undone - r0).abs().max() < 1000 * torch.finfo(torch.float32).eps / 2


# ---------------------------------------------------------------- derivatives


@each_kind
@each_option
def test_first_and_second_derivatives(option, kind, seed):
    """Every order and direction."""
    every_order(*problem(seed, kind, **OPTIONS[option]))


@pytest.mark.parametrize("name", ["modrelu", "modrelu_realrep", "leaky_relu"])
def test_derivatives_through_activations(name, seed):
    every_order(*problem(seed, "rotations", name, **OPTIONS["lengths"]))
    every_order(*problem(seed, "memory with eta", name))


@each_kind
@each_option
def test_vmap_equals_a_loop(option, kind, seed):
    every_member(*problem(seed, kind, **OPTIONS[option]))


@each_kind
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_agree_with_autograd(transform, kind, seed):
    transform_agrees(transform, *problem(seed, kind), 1)


@each_kind
@each_option
def test_compiled_in_one_piece(option, kind, seed):
    """The loop over the steps is one operator of the graph."""
    same_when_compiled(*problem(seed, kind, "modrelu", **OPTIONS[option]))


def test_dual_numbers_through_a_function_compiled_before(seed):
    same_dual_numbers_when_compiled_before(*problem(seed), 1)


def test_gradients_of_the_memory_alone(seed):
    """A loss of r_last only, and one of the states only: the cotangents of the other are zeros."""
    _, at = problem(seed, "memory")
    at = [t.requires_grad_() for t in at]
    both = [
        torch.autograd.grad(score(it.rum(*at[:6], h0=at[6], r0=at[7], lam=1)[k]), at, allow_unused=True) for k in (0, 1)
    ]
    states, last = it.rum(*at[:6], h0=at[6], r0=at[7], lam=1)
    together = torch.autograd.grad(score(states) + score(last), at)
    same(together, [a + b for a, b in zip(*both, strict=True)], "gradient")


# ---------------------------------------------------------------- lengths, memory, threads


@each_kind
@pytest.mark.parametrize("option", [name for name, given in OPTIONS.items() if "lengths" in given])
@pytest.mark.parametrize("create_graph", [False, True], ids=["kernel", "formula"])
def test_padding_reaches_nothing(create_graph, option, kind, seed):
    """Behind its length a sequence has zero states, and NaN there changes nothing; alone it has the same states."""
    keywords = OPTIONS[option]
    f, at = problem(seed, kind, **keywords)
    padded = [at[0].clone(), *at[1:]]
    for b, length in enumerate(keywords["lengths"]):
        padded[0][length:, b] = float("nan")
    states = f(*padded)
    same(states, f(*at), "states")
    same(gradients(f, padded, create_graph=create_graph), gradients(f, at), "gradient")
    one, _ = problem(seed, kind, **{k: v for k, v in keywords.items() if k != "lengths"})
    for b, length in enumerate(keywords["lengths"]):
        assert not states[length:STEPS, b].any()
        alone = one(at[0][:length, b : b + 1], *at[1:6], *(t[b : b + 1] for t in at[6:]))
        same(alone[:length, 0], states[:length, b], f"sequence {b}")
        same(alone[length:, 0], states[STEPS:, b], f"memory {b}")


@pytest.mark.parametrize("keywords", KINDS.values(), ids=KINDS)
def test_a_sequence_may_be_cut_anywhere(keywords, seed):
    _, at = problem(seed, "memory", sizes=(6, 7, 2, 3))
    x, *weights, h0, r0 = at
    r0 = r0 if "lam" in keywords else None
    whole, end = it.rum(x, *weights, h0=h0, r0=r0, **keywords)
    first, middle = it.rum(x[:3], *weights, h0=h0, r0=r0, **keywords)
    rest, last = it.rum(x[3:], *weights, h0=first[-1], r0=middle, **keywords)
    tolerance.identical(torch.cat((first, rest)), whole, "states")
    assert (last is None) == (end is None) == ("lam" not in keywords)
    if end is not None:
        tolerance.identical(last, end, "memory")


def test_one_initial_state_and_memory_serve_every_sequence(seed):
    f, at = problem(seed, "memory")
    row, r0 = at[6][0], at[7][0]
    same(f(*at[:6], row, r0), f(*at[:6], row.expand(BATCH, N), r0.expand(BATCH, N, N)))
    same(f(*at[:6], row, None), f(*at[:6], row, torch.eye(N, dtype=torch.float64)))


def test_absent_biases_are_zero(seed):
    _, (x, w, u, b, embed, embed_bias, _) = problem(seed)
    for some in ((None, embed_bias), (b, None), (None, None)):
        zeros = [torch.zeros_like(t) if s is None else s for s, t in zip(some, (b, embed_bias), strict=True)]
        same(it.rum(x, w, u, some[0], embed, some[1])[0], it.rum(x, w, u, zeros[0], embed, zeros[1])[0])


@pytest.mark.alone
@each_kind
def test_threads_and_layouts_change_no_bit(kind, seed, threads):  # noqa: ARG001  the fixture restores the budget
    derivatives.threads_and_layouts_change_no_bit(*problem(seed, kind, dtype=np.float32, sizes=(48, 30, 32, 5)))


def test_what_is_not_asked_for_is_not_computed(seed):
    derivatives.what_is_not_asked_for_is_not_computed(*problem(seed, "memory"))


# ---------------------------------------------------------------- refusals

X, W, U, B, E, F = (torch.zeros(s) for s in ((3, 2, 2), (8, 4), (8, 2), (8,), (4, 2), (4,)))
MISTAKES = {
    "x without steps": (lambda: it.rum(X[:0], W, U, B, E, F), ValueError, "x must have shape"),
    "an integer x": (lambda: it.rum(X.long(), W, U, B, E, F), TypeError, "x must be"),
    "a complex x": (lambda: it.rum(X + 0j, W, U, B, E, F), TypeError, "x must be real"),
    "half of w": (lambda: it.rum(X, W[:4], U, B, E, F), ValueError, "w must have shape"),
    "a w of another precision": (lambda: it.rum(X, W.double(), U, B, E, F), TypeError, "w is float64 and x is float32"),
    "a complex embedding": (lambda: it.rum(X, W, U, B, E + 0j, F), TypeError, "embed_weight must be real"),
    "a number for w": (lambda: it.rum(X, 1.0, U, B, E, F), TypeError, "w must be a torch.Tensor"),
    "u of other features": (lambda: it.rum(X, W, U[..., :1], B, E, F), ValueError, "u must have shape"),
    "half of b": (lambda: it.rum(X, W, U, B[:4], E, F), ValueError, "b must have shape"),
    "a long embedding": (lambda: it.rum(X, W, U, B, U, F), ValueError, "embed_weight must have shape"),
    "a long bias": (lambda: it.rum(X, W, U, B, E, B), ValueError, "embed_bias must have shape"),
    "h0 of one sequence": (lambda: it.rum(X, W, U, B, E, F, h0=torch.zeros(1, 4)), ValueError, "h0 must have shape"),
    "r0 of three": (lambda: it.rum(X, W, U, B, E, F, r0=torch.zeros(3, 4, 4), lam=1), ValueError, "r0 must have shape"),
    "r0 without memory": (lambda: it.rum(X, W, U, B, E, F, r0=torch.eye(4)), ValueError, "r0 must not be given"),
    "lam of two": (lambda: it.rum(X, W, U, B, E, F, lam=2), ValueError, "lam must be 0"),
    "half a lam": (lambda: it.rum(X, W, U, B, E, F, lam=0.5), TypeError, "lam must be an integer"),
    "no length": (lambda: it.rum(X, W, U, B, E, F, eta=0), ValueError, "eta must be a positive number"),
    "NaN as length": (lambda: it.rum(X, W, U, B, E, F, eta=float("nan")), ValueError, "eta must be a positive number"),
    "text as length": (lambda: it.rum(X, W, U, B, E, F, eta="long"), TypeError, "eta must be"),
    "an unknown activation": (
        lambda: it.rum(X, W, U, B, E, F, activation="sine"),
        ValueError,
        "activation must be one of",
    ),
    "no bias for modReLU": (
        lambda: it.rum(X, W, U, B, E, F, activation="modrelu"),
        ValueError,
        "activation_bias must be",
    ),
    "a slope of one": (lambda: it.rum(X, W, U, B, E, F, slope=1.0), ValueError, "slope"),
    "long lengths": (lambda: it.rum(X, W, U, B, E, F, lengths=[4, 1]), ValueError, "lengths must lie in"),
    "text for a flag": (lambda: it.rum(X, W, U, B, E, F, reverse="no"), TypeError, "reverse must be a bool"),
    "no backend": (lambda: it.rum(X, W, U, B, E, F, backend="tpu"), ValueError, "backend"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_refusals(mistake):
    call, error, words = MISTAKES[mistake]
    with pytest.raises(error, match=words):
        call()
