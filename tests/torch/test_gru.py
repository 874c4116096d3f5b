"""`it.gru`: the textbook loop, torch.nn.GRU, every mode of torch, lengths and directions, threads, refusals."""

import numpy as np
import pytest
import torch

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
    transform_agrees,
)

N, STEPS, BATCH, FEATURES = 4, 3, 2, 2
RESETS = {"before": {"reset": "before"}, "after": {"reset": "after"}}
OPTIONS = {
    "plain": {},
    "lengths": {"lengths": [3, 2]},
    "unsorted lengths": {"lengths": [1, 3]},
    "reverse": {"reverse": True},
    "reverse with lengths": {"reverse": True, "lengths": [2, 3]},
}
each_reset = pytest.mark.parametrize("reset", RESETS)
each_option = pytest.mark.parametrize("option", OPTIONS)
each_activation = pytest.mark.parametrize("name", ["tanh", "relu", "identity", "oplu", "modrelu", "modrelu_realrep"])


def problem(rng, reset="before", name="tanh", dtype=np.float64, sizes=(N, STEPS, BATCH, FEATURES), **keywords):
    """The states as a function of x, w, u, b, h0, c_h and the activation's bias, and a point."""
    n, steps, batch, features = sizes
    shapes = [(steps, batch, features), (3, n, n), (3, n, features), (3, n), (batch, n)]
    at = [draw(rng, *shape, dtype=dtype) / (1 if len(shape) < 3 else n**0.5) for shape in shapes]
    after = reset == "after"
    if after:
        at.append(draw(rng, n, dtype=dtype))
    units = {"modrelu": n, "modrelu_realrep": n // 2}.get(name)
    if units is not None:
        at.append(0.1 + draw(rng, units, dtype=dtype).abs())

    def f(x, w, u, b, h0, *biases):
        hidden = biases[0] if after else None
        own = biases[-1] if units is not None else None
        given = {"h0": h0, "reset": reset, "hidden_bias": hidden, "activation": name, "activation_bias": own}
        return it.gru(x, w, u, b, **given, **keywords)

    return f, at


def textbook(arguments, reset, name):
    """Every sequence alone, step by step, in NumPy."""
    x, w, u, b, h0, *biases = (t.detach().numpy() for t in arguments)
    hidden = biases[0] if reset == "after" else 0
    own = torch.from_numpy(biases[-1]) if name.startswith("modrelu") else None
    sigma = lambda z: 1 / (1 + np.exp(-z))
    states = np.empty((*x.shape[:2], w.shape[-1]))
    for k in range(x.shape[1]):
        h = h0[k]
        for t in range(x.shape[0]):
            drive = u @ x[t, k] + b
            z, r = (sigma(w[g] @ h + drive[g]) for g in (0, 1))
            product = r * (w[2] @ h + hidden) if reset == "after" else w[2] @ (r * h)
            c = it.activate(torch.from_numpy(product + drive[2]), name, bias=own).numpy()
            h = states[t, k] = z * h + (1 - z) * c
    return torch.from_numpy(states)


@each_reset
@each_activation
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["single", "double"])
def test_states_are_those_of_the_textbook(dtype, name, reset, seed):
    f, at = problem(seed, reset, name, dtype, (6, 5, 3, 2))
    wide = [t.double() for t in at]
    found, expected = f(*at), textbook(wide, reset, name)
    assert found.dtype == at[0].dtype
    tolerance.close(found, expected, tolerance.sequence(dtype, 6, 5), "states")
    bars, wide_bars = gradients(f, at), gradients(f, wide)
    for bar, wide_bar in zip(bars, wide_bars, strict=True):
        tolerance.close(bar, wide_bar, tolerance.sequence_gradient(dtype, 6, 5), "gradient")


@pytest.mark.parametrize("keywords", [{}, {"lengths": [4, 2, 2]}], ids=["whole", "lengths"])
def test_reset_after_is_torch_gru(keywords, seed):
    """States and gradients, its packed order r, z, h permuted; lengths as a PackedSequence has them."""
    f, at = problem(seed, "after", sizes=(5, 4, 3, 2), **keywords)
    x, w, u, b, h0, hidden = (t.detach().requires_grad_() for t in at)
    layer, order = torch.nn.GRU(2, 5, dtype=torch.float64), [1, 0, 2]

    def theirs(x, w, u, b, h0, hidden):
        zero = torch.zeros(2, 5, dtype=torch.float64)
        weights = {
            "weight_ih_l0": u[order].flatten(0, 1),
            "weight_hh_l0": w[order].flatten(0, 1),
            "bias_ih_l0": b[order].flatten(),
            "bias_hh_l0": torch.cat((zero, hidden[None])).flatten(),
        }
        lengths = keywords.get("lengths", [4, 4, 4])
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths))
        out, _ = torch.func.functional_call(layer, weights, (packed, h0[None]))
        return torch.nn.utils.rnn.pad_packed_sequence(out)[0]

    every = (x, w, u, b, h0, hidden)
    same(f(*every), theirs(*every), "states")
    same(gradients(f, every), gradients(theirs, every), "gradient")


# ---------------------------------------------------------------- derivatives


@each_reset
@each_option
def test_first_and_second_derivatives(option, reset, seed):
    """Every order and direction."""
    every_order(*problem(seed, reset, **OPTIONS[option]))


@pytest.mark.parametrize("name", ["modrelu", "modrelu_realrep", "leaky_relu"])
def test_derivatives_through_activations(name, seed):
    every_order(*problem(seed, "before", name, **OPTIONS["lengths"]))
    every_order(*problem(seed, "after", name))


@each_reset
@each_option
def test_vmap_equals_a_loop(option, reset, seed):
    every_member(*problem(seed, reset, **OPTIONS[option]))


@each_reset
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_agree_with_autograd(transform, reset, seed):
    transform_agrees(transform, *problem(seed, reset), 1)


@each_reset
@each_option
def test_compiled_in_one_piece(option, reset, seed):
    """The loop over the steps is one operator of the graph."""
    same_when_compiled(*problem(seed, reset, "modrelu", **OPTIONS[option]))


def test_dual_numbers_through_a_function_compiled_before(seed):
    same_dual_numbers_when_compiled_before(*problem(seed), 1)


# ---------------------------------------------------------------- lengths, memory, threads


@each_reset
@pytest.mark.parametrize("option", [name for name, given in OPTIONS.items() if "lengths" in given])
@pytest.mark.parametrize("create_graph", [False, True], ids=["kernel", "formula"])
def test_padding_reaches_nothing(create_graph, option, reset, seed):
    """Behind its length a sequence has zero states, and NaN there changes nothing; alone it has the same states."""
    keywords = OPTIONS[option]
    f, at = problem(seed, reset, **keywords)
    padded = [at[0].clone(), *at[1:]]
    for b, length in enumerate(keywords["lengths"]):
        padded[0][length:, b] = float("nan")
    states = f(*padded)
    same(states, f(*at), "states")
    same(gradients(f, padded, create_graph=create_graph), gradients(f, at), "gradient")
    one, _ = problem(seed, reset, **{k: v for k, v in keywords.items() if k != "lengths"})
    for b, length in enumerate(keywords["lengths"]):
        assert not states[length:, b].any()
        alone = one(at[0][:length, b : b + 1], *at[1:4], at[4][b : b + 1], *at[5:])
        same(alone[:, 0], states[:length, b], f"sequence {b}")


@each_reset
def test_a_sequence_may_be_cut_anywhere(reset, seed):
    f, at = problem(seed, reset, sizes=(6, 7, 2, 3))
    first = f(at[0][:3], *at[1:])
    rest = f(at[0][3:], *at[1:4], first[-1], *at[5:])
    tolerance.identical(torch.cat((first, rest)), f(*at), "states")


def test_one_initial_state_serves_every_sequence(seed):
    f, at = problem(seed)
    row = at[4][0]
    same(f(*at[:4], row), f(*at[:4], row.expand(BATCH, N)))


@pytest.mark.alone
@each_reset
def test_threads_and_layouts_change_no_bit(reset, seed, threads):  # noqa: ARG001  the fixture restores the budget
    derivatives.threads_and_layouts_change_no_bit(*problem(seed, reset, dtype=np.float32, sizes=(96, 30, 32, 5)))


def test_what_is_not_asked_for_is_not_computed(seed):
    derivatives.what_is_not_asked_for_is_not_computed(*problem(seed, "after"))


# ---------------------------------------------------------------- refusals

X, W, U, B = (torch.zeros(s) for s in ((3, 2, 2), (3, 4, 4), (3, 4, 2), (3, 4)))
MISTAKES = {
    "x without steps": (lambda: it.gru(X[:0], W, U, B), ValueError, "x must have shape"),
    "an integer x": (lambda: it.gru(X.long(), W, U, B), TypeError, "x must be"),
    "a complex x": (lambda: it.gru(X + 0j, W, U, B), TypeError, "x must be real"),
    "two gates": (lambda: it.gru(X, W[:2], U, B), ValueError, "w must have shape"),
    "a w of another precision": (lambda: it.gru(X, W.double(), U, B), TypeError, "w is float64 and x is float32"),
    "a complex w": (lambda: it.gru(X, W + 0j, U, B), TypeError, "w must be real"),
    "a number for w": (lambda: it.gru(X, 1.0, U, B), TypeError, "w must be a torch.Tensor"),
    "u of other features": (lambda: it.gru(X, W, U[..., :1], B), ValueError, "u must have shape"),
    "b of one gate": (lambda: it.gru(X, W, U, B[0]), ValueError, "b must have shape"),
    "h0 of one sequence": (lambda: it.gru(X, W, U, B, h0=torch.zeros(1, 4)), ValueError, "h0 must have shape"),
    "an unknown reset": (lambda: it.gru(X, W, U, B, reset="never"), ValueError, "reset must be 'before' or 'after'"),
    "hidden_bias before": (lambda: it.gru(X, W, U, B, hidden_bias=B[0]), ValueError, "hidden_bias must not be given"),
    "a long hidden_bias": (
        lambda: it.gru(X, W, U, B, reset="after", hidden_bias=B),
        ValueError,
        "hidden_bias must have shape",
    ),
    "an unknown activation": (lambda: it.gru(X, W, U, B, activation="sine"), ValueError, "activation must be one of"),
    "no bias for modReLU": (lambda: it.gru(X, W, U, B, activation="modrelu"), ValueError, "activation_bias must be"),
    "a slope of one": (lambda: it.gru(X, W, U, B, slope=1.0), ValueError, "slope"),
    "long lengths": (lambda: it.gru(X, W, U, B, lengths=[4, 1]), ValueError, "lengths must lie in"),
    "text for a flag": (lambda: it.gru(X, W, U, B, reverse="no"), TypeError, "reverse must be a bool"),
    "no backend": (lambda: it.gru(X, W, U, B, backend="tpu"), ValueError, "backend"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_refusals(mistake):
    call, error, words = MISTAKES[mistake]
    with pytest.raises(error, match=words):
        call()
