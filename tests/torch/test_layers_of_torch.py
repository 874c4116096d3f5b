"""What PyTorch's own tests ask of its layers and cells, of ours that load their weights, in their place."""

import contextlib
import pickle

import pytest
import torch
from torch.nn.utils import rnn
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

import isometry.torch as it
from layers import AS_TORCH, B, D, N, T, draw, each_of_torch, twins, zeros
from of_torch import EXACT, agree, gradients

both_ways = pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "two-way"])


@each_of_torch
@both_ways
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_values_and_gradients(name, bidirectional, batch_first, bias, layers):
    """With a state and without, of a batch and of a single sequence, contiguous or not."""
    keywords = {"bidirectional": bidirectional, "batch_first": batch_first, "bias": bias, "num_layers": layers}
    pair = twins(name, D, N, **keywords)
    count = layers * (1 + bidirectional)
    x = draw(T, B, D, seed=1).transpose(0, int(batch_first)).requires_grad_()
    agree(pair, x)
    agree(pair, x, tree_map(lambda t: t.requires_grad_(), zeros(pair[0], count, B, seed=2)))
    agree(pair, draw(T, D, seed=3).requires_grad_())
    agree(pair, draw(T, D, seed=3), zeros(pair[0], count, seed=4))
    strided = draw(T, B, 2 * D, seed=5)[..., ::2].transpose(0, int(batch_first))
    agree(pair, strided, tree_map(lambda t: t.mT.contiguous().mT, zeros(pair[0], count, B, seed=6)))


@each_of_torch
@both_ways
@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed_sequences_are_each_alone(name, bidirectional, enforce_sorted):
    """Sorted and unsorted, output and last states in the order they came in, and gradients of each sequence."""
    theirs, ours = twins(name, D, N, 2, bidirectional=bidirectional)
    lengths = sorted([1, 5, 3, 5, 2], reverse=True) if enforce_sorted else [1, 5, 3, 5, 2]
    count = 2 * (1 + bidirectional)
    h = zeros(theirs, count, len(lengths), seed=9)
    parts = [draw(k, D, seed=i).requires_grad_() for i, k in enumerate(lengths)]
    results = []
    for layer in (theirs, ours):
        packed, last = layer(rnn.pack_sequence(parts, enforce_sorted=enforce_sorted), h)
        assert type(packed) is rnn.PackedSequence
        fields = packed._asdict() if not enforce_sorted else {"data": packed.data, "batch_sizes": packed.batch_sizes}
        results.append((fields, last, gradients(layer, (packed.data, last), *parts)))
    assert_close(*results, **EXACT)
    padded, sizes = rnn.pad_packed_sequence(packed)
    assert sizes.tolist() == lengths
    for i, part in enumerate(parts):
        own, end = ours(part, tree_map(lambda t: t[:, i], h))
        assert_close(padded[: lengths[i], i], own, **EXACT)
        assert_close(tree_map(lambda t: t[:, i], last), end, **EXACT)
        assert not padded[lengths[i] :, i].any()


#: Mistakes in a call: how an input of T steps of B sequences, and a state, are changed.
MISTAKES = {
    "features": (lambda x: x[..., 1:], lambda h: h),
    "one axis": (lambda x: x[0, 0], lambda h: h),
    "four axes": (lambda x: x[None], lambda h: h),
    "sequences of the state": (lambda x: x, lambda h: h[:, 1:]),
    "units of the state": (lambda x: x, lambda h: h[..., 1:]),
    "layers of the state": (lambda x: x, lambda h: h[1:]),
    "a state without a batch": (lambda x: x, lambda h: h[:, 0]),
    "a batch in the state alone": (lambda x: x[:, 0], lambda h: h),
}


@each_of_torch
@pytest.mark.parametrize("mistake", MISTAKES)
def test_errors_of_a_call(name, mistake):
    """torch's class and its message, which is not the same in its RNN and its GRU."""
    of_input, of_state = MISTAKES[mistake]
    pair = twins(name, D, N, 2)
    x, h = of_input(draw(T, B, D)), tree_map(of_state, zeros(pair[0], 2, B))
    errors = []
    for layer in pair:
        with pytest.raises((RuntimeError, ValueError)) as error:
            layer(x, h)
        errors.append((error.type, str(error.value).replace("D tensor", "D")))
    assert errors[0] == errors[1]


WRONG = {"hidden_size": [0, -1, 2.5], "num_layers": [0], "dropout": [2, True, "0.5"], "bias": [1], "batch_first": [0]}


@each_of_torch
def test_errors_and_warnings_of_the_constructor(name):
    for keyword, values in WRONG.items():
        for value in values:
            errors = []
            for make in AS_TORCH[name]:
                with pytest.raises((TypeError, ValueError)) as error:
                    make(**{"input_size": D, "hidden_size": N, keyword: value})
                errors.append(error.type)
            assert errors[0] is errors[1]
    said = []
    for make in AS_TORCH[name]:
        with pytest.warns(UserWarning, match="dropout option adds dropout after all but last") as warned:
            make(D, N, dropout=0.5)
        said.append(str(warned[0].message))
    assert said[0] == said[1]


@each_of_torch
def test_dropout_between_layers(name):
    """None at rate 0 and in evaluation; at rate 1 the second layer reads zeros, also where the rate is set later."""
    theirs, ours = twins(name, D, N, 2, dropout=1.0)
    x = draw(T, B, D)
    agree((theirs, ours), x)
    agree((theirs.eval(), ours.eval()), x)
    whole = ours(x)
    for layer in (theirs, ours):
        layer.train().dropout = 0.0
    agree((theirs, ours), x)
    assert_close(ours(x), whole, rtol=0, atol=0)
    ours.dropout = 1.0
    assert not torch.equal(ours(x)[0], whole[0])
    other = draw(T, B, D, seed=8)  # what the second layer gives does not depend on the input
    assert_close(ours(x)[0], ours(other)[0], rtol=0, atol=0)


@each_of_torch
def test_dropout_is_drawn_anew(name):
    """By every call in training, by the seed, also by a layer that came through a pickle; packed alike."""
    _, ours = twins(name, 100, 100, 2, dropout=0.5)
    x = draw(3, 4, 100)
    torch.manual_seed(5)
    first, second = ours(x)[0], ours(x)[0]
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    again = pickle.loads(pickle.dumps(ours))
    assert torch.equal(again(x)[0], first)
    assert torch.equal(again(x)[0], second)
    packed = rnn.pack_sequence(list(x.transpose(0, 1)))
    assert not torch.equal(ours(packed)[0].data, ours(packed)[0].data)
    _, whole = twins(name, 100, 100, 2)
    dropped, kept = (tree_leaves(layer(x)[1])[0][0] for layer in (ours, whole))
    assert torch.equal(dropped, kept)  # the states of the first layer are whole; what is dropped is what is read


@each_of_torch
def test_entries_that_are_wrong(name):
    """A missing entry of torch's state, another one, or one of another shape is an error that names it."""
    theirs = twins(name, D, N, 2, bidirectional=True)[0].state_dict()
    missing = {key: value for key, value in theirs.items() if key != "weight_hh_l1_reverse"}
    for state, entry in (
        (missing, r"Missing key.*0\.weight_hh_l1_reverse"),
        ({**theirs, "own": torch.ones(1)}, r"Unexpected key.*0\.own"),
        ({**theirs, "weight_hh_l1_reverse": torch.zeros(7, 2)}, r"size mismatch for 0\.weight_hh_l1_reverse"),
    ):
        model = torch.nn.Sequential(AS_TORCH[name][1](D, N, 2, bidirectional=True))
        with pytest.raises(RuntimeError, match=entry):
            model.load_state_dict({f"0.{key}": value for key, value in state.items()})


@pytest.mark.parametrize("name", ["rnn", "lstm"])
@pytest.mark.parametrize("keywords", [{}, {"bias": False}, {"bidirectional": True}], ids=str)
def test_names_shapes_and_draws(name, keywords):
    """The same numbers of the same seed; a GRU has its gates in another order."""
    states = []
    for make in AS_TORCH[name]:
        torch.manual_seed(1)
        layer = make(D, N, 2, **keywords)
        states.append(layer.state_dict())
        states.append([len(row) for row in layer.all_weights])
    assert list(states[0]) == list(states[2]) and states[1] == states[3]
    assert_close(states[2], states[0], rtol=0, atol=0)


@each_of_torch
@pytest.mark.parametrize("keywords", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}], ids=str)
def test_weights_in_the_order_of_torch(name, keywords):
    """`all_weights` are the parameters and `_all_weights` their names, by which programs write to them."""
    theirs, ours = twins(name, **keywords)
    assert ours.proj_size == theirs.proj_size and ours.flatten_parameters() is None
    with torch.no_grad():
        for layer in (theirs, ours):
            for k, row in enumerate(layer._all_weights):
                for i, own in enumerate(row):
                    getattr(layer, own).fill_(0.1 * (k - i))
    assert_close(it.nn.to_torch(ours).state_dict(), theirs.state_dict(), rtol=0, atol=0)
    for ours_row, own, theirs_row in zip(ours.all_weights, ours._all_weights, theirs.all_weights, strict=True):
        assert all(p is getattr(ours, attribute) for p, attribute in zip(ours_row, own, strict=True))
        assert [p.numel() for p in ours_row] == [p.numel() for p in theirs_row]


CELLS = {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell}
each = pytest.mark.parametrize("kind", CELLS)


def pair(kind, **keywords):
    torch.manual_seed(4)
    theirs = CELLS[kind](D, N, dtype=torch.float64, **keywords)
    return theirs, it.nn.from_torch(theirs, cells=True)


def state(kind, *shape):
    return (draw(*shape, N, seed=1), draw(*shape, N, seed=2)) if kind == "lstm" else draw(*shape, N, seed=1)


@each
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(), (1,), (B,), (0,)])
def test_values_and_gradients_of_cells(kind, bias, batch):
    x = draw(*batch, D, seed=3).requires_grad_()
    for hx in (None, state(kind, *batch)):
        agree(pair(kind, bias=bias), x, hx)


@each
def test_many_steps(kind):
    """A decoder's loop, inside `cached` and outside, with and without gradients, with hooks, by `step`."""
    theirs, ours = pair(kind)
    calls = []
    for grad in (True, False):
        for cached in (True, False):
            for hooked in (False, True):
                handle = ours.register_forward_hook(lambda *_: calls.append(0)) if hooked else None
                a = b = state(kind, B)
                with torch.set_grad_enabled(grad), ours.cached() if cached else contextlib.nullcontext():
                    for seed in range(4):
                        x = draw(B, D, seed=seed)
                        a, b = (ours if seed else ours.step)(x, a), theirs(x, b)
                torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
                if handle is not None:
                    handle.remove()
    assert len(calls) == 4 * 4


@each
def test_state_dicts(kind):
    """Of torch's cell and of ours; `test_subclasses` has the way back."""
    theirs, ours = pair(kind)
    other, x = it.nn.from_torch(CELLS[kind](D, N, dtype=torch.float64), cells=True), draw(B, D)
    for cell in (theirs, ours):
        torch.nn.init.zeros_(next(other.parameters()))
        other.load_state_dict(cell.state_dict())
        torch.testing.assert_close(other(x), theirs(x), rtol=1e-12, atol=1e-12)
    if kind == "lstm":
        assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours).startswith(type(theirs).__name__ + f"({D}, {N}")


@each
def test_what_a_cell_refuses(kind):
    _, ours = pair(kind)
    name, other = type(ours).__name__, "gru" if kind == "lstm" else "lstm"
    with pytest.raises(ValueError, match=f"^{name}: .*1D or 2D, got 3D"):
        ours(draw(2, B, D))
    with pytest.raises(TypeError, match="^input must be"):
        ours([1.0] * D)
    with pytest.raises(TypeError, match="^hx must be"):
        ours(draw(B, D), state(other, B))
    with pytest.raises(RuntimeError, match=f"^{name}: Expected hx of shape .{B}, {N}."):
        ours(draw(B, D), state(kind, B + 1))
    with pytest.raises(RuntimeError, match="input_size"):
        ours(draw(B, D + 1))
