"""A cell with marks in its sequences gives what separate calls give, forward and backward."""

import pytest
import torch

import isometry.torch as it
import reference as ref
from tolerance import close, sequence, sequence_gradient

T, B, D, N = 7, 4, 2, 5


def transition(upper):
    return it.Cayley(upper)


#: name -> states of (x, weights, keywords), and the shapes of the weights
CELLS = {
    "recurrence": (lambda x, w, **k: it.recurrence(transition(w[0]), x, w[1], **k), [(10,), (N, D)]),
    "gru before": (lambda x, w, **k: it.gru(x, *w, **k), [(3, N, N), (3, N, D), (3, N)]),
    "gru after": (lambda x, w, **k: it.gru(x, *w, reset="after", **k), [(3, N, N), (3, N, D), (3, N)]),
    "goru": (lambda x, w, **k: it.goru(transition(w[0]), x, *w[1:], **k), [(10,), (2, N, N), (3, N, D), (3, N)]),
    "rum": (lambda x, w, **k: it.rum(x, *w, **k)[0], [(2 * N, N), (2 * N, D), (2 * N,), (N, D), (N,)]),
    "rum sphere": (
        lambda x, w, **k: it.rum(x, *w, eta=1.5, **k)[0],
        [(2 * N, N), (2 * N, D), (2 * N,), (N, D), (N,)],
    ),
    "rum memory": (lambda x, w, **k: it.rum(x, *w, lam=1, **k)[0], [(2 * N, N), (2 * N, D), (2 * N,), (N, D), (N,)]),
}
each_cell = pytest.mark.parametrize("name", CELLS)


def drawn(rng, *shape):
    return torch.from_numpy(ref.normal(rng, *shape)) / 2


def apart(cell, shapes, rng, reverse=False, lengths=(T, T, 5, 3)):
    """Values and gradients of every argument, the states before the marks among them, against a call for each piece."""
    starts = torch.zeros(T, B, dtype=torch.bool)
    starts[[2, 3, 5, 0, 4, 6, 1], [0, 0, 0, 1, 1, 2, 3]] = True
    x, weights = drawn(rng, T, B, D), [drawn(rng, *shape) for shape in shapes]
    h0, own, ct = drawn(rng, B, N), drawn(rng, B, N), drawn(rng, T, B, N)
    leaves = {"x": x, "h0": h0, "start_state": own, **{f"weight {k}": w for k, w in enumerate(weights)}}
    for t in leaves.values():
        t.requires_grad_()
    states = cell(x, weights, h0=h0, lengths=list(lengths), reverse=reverse, starts=starts, start_state=own)
    loss = 0.0
    for s, length in enumerate(lengths):
        for steps, start in ref.pieces(s, length, reverse, starts):
            piece = slice(min(steps), max(steps) + 1), slice(s, s + 1)
            first = {"h0": h0, "start_state": own}[start][s : s + 1]
            part = cell(x[piece], weights, h0=first, reverse=reverse)
            close(states[piece].detach(), part.detach(), sequence("float64", 4, T), f"column {s}, {steps}")
            loss = loss + (part * ct[piece]).sum()
        assert not states[length:, s].any()
    grads = [
        torch.autograd.grad(one, list(leaves.values()), allow_unused=True, materialize_grads=True)
        for one in ((states * ct).sum(), loss)
    ]
    for name, found, expected in zip(leaves, *grads, strict=True):
        close(found, expected, sequence_gradient("float64", 4, T), f"gradient of {name}", float(ct.norm()))


@pytest.mark.cpu
@pytest.mark.parametrize("reverse", [False, True])
@each_cell
def test_pieces_are_separate_calls(name, reverse, seed):
    apart(*CELLS[name], seed, reverse)


@pytest.mark.cpu
@pytest.mark.parametrize("name", [name for name in CELLS if name != "rum memory"])  # a memory has no checkpoints
def test_checkpoints_keep_the_marks(name, seed):
    cell, shapes = CELLS[name]
    apart(lambda *args, **k: cell(*args, checkpoint="sqrt", **k), shapes, seed)
