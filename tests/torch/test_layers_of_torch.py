"""What PyTorch's own tests ask of its RNN and GRU, of the layers that load their weights, in their place."""

import copy
import io
import pickle
import warnings

import pytest
import torch
from torch.nn.utils import rnn
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

from layers import AS_TORCH, B, D, N, T, draw, each_of_torch, twins, zeros

EXACT = {"rtol": 1e-12, "atol": 1e-12}
both_ways = pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "two-way"])


def gradients(layer, result, *inputs):
    """Of a weighted sum of the results, with respect to the inputs; then the sum of squares of those of the weights."""
    loss = sum((t * draw(*t.shape, seed=k)).sum() for k, t in enumerate(tree_leaves(result)))
    found = torch.autograd.grad(loss, [*inputs, *layer.parameters()])
    return [*found[: len(inputs)], sum(g.square().sum() for g in found[len(inputs) :])]


def agree(pair, *args):
    """Output, last states and gradients of both layers on the same arguments."""
    results = [layer(*args) for layer in pair]
    assert_close(*results, **EXACT)
    inputs = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor) and t.requires_grad]
    assert_close(*[gradients(layer, result, *inputs) for layer, result in zip(pair, results, strict=True)], **EXACT)


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
        padded, sizes = rnn.pad_packed_sequence(packed)
        assert sizes.tolist() == lengths
        results.append((padded, last, gradients(layer, (padded, last), *parts)))
    assert_close(*results, **EXACT)
    padded, last, _ = results[1]
    for i, part in enumerate(parts):
        own, end = ours(part, tree_map(lambda t: t[:, i], h))
        assert_close(padded[: lengths[i], i], own, **EXACT)
        assert_close(tree_map(lambda t: t[:, i], last), end, **EXACT)
        assert not padded[lengths[i] :, i].any()


@each_of_torch
def test_packed_sequences_of_padded_ones(name):
    """The same PackedSequence as torch's, field by field, whichever way the padding was laid out."""
    pair = twins(name)
    x, lengths = draw(T, B, D), torch.tensor([5, 5, 2, 1])
    for packed in (
        rnn.pack_padded_sequence(x, lengths),
        rnn.pack_padded_sequence(x.transpose(0, 1), lengths, batch_first=True),
        rnn.pack_padded_sequence(x, lengths.flip(0), enforce_sorted=False),
    ):
        (expected, _), (found, _) = (layer(packed) for layer in pair)
        assert type(found) is rnn.PackedSequence
        assert_close(found.data, expected.data, **EXACT)
        for field in ("batch_sizes", "sorted_indices", "unsorted_indices"):
            a, b = getattr(found, field), getattr(expected, field)
            assert (a is None and b is None) or torch.equal(a, b)


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


@each_of_torch
@pytest.mark.parametrize(
    "keywords",
    [
        {"hidden_size": 0},
        {"hidden_size": -1},
        {"hidden_size": 2.5},
        {"num_layers": 0},
        {"dropout": 2},
        {"dropout": True},
        {"dropout": "0.5"},
        {"bias": 1},
        {"batch_first": "yes"},
    ],
    ids=str,
)
def test_errors_of_the_constructor(name, keywords):
    errors = []
    for make in AS_TORCH[name]:
        with pytest.raises((TypeError, ValueError)) as error:
            make(**{"input_size": D, "hidden_size": N, **keywords})
        errors.append(error.type)
    assert errors[0] is errors[1]


@each_of_torch
def test_dropout_of_one_layer_warns(name):
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
    dropped = (ours(x)[1] if isinstance(ours(x)[1], torch.Tensor) else ours(x)[1][0])[0]
    kept = whole(x)[1] if isinstance(whole(x)[1], torch.Tensor) else whole(x)[1][0]
    assert torch.equal(dropped, kept[0])  # the states of the first layer are whole; what is dropped is what is read


@each_of_torch
@pytest.mark.parametrize("bias", [False, True])
def test_state_dicts(name, bias):
    """torch's goes in strictly, without bias too, through a file; a missing or another entry is an error."""
    theirs, ours = twins(name, D, N, 2, bidirectional=True, bias=bias)
    stream = io.BytesIO()
    torch.save(theirs.state_dict(), stream)
    stream.seek(0)
    other = AS_TORCH[name][1](D, N, 2, bidirectional=True, bias=bias, dtype=torch.float64)
    found = other.load_state_dict(torch.load(stream, weights_only=True))
    assert not found.missing_keys and not found.unexpected_keys
    assert_close(dict(other.named_parameters()), dict(ours.named_parameters()), rtol=0, atol=0)
    assert bias or not any("bias" in key for key in ours.state_dict())
    missing = theirs.state_dict()
    del missing["weight_hh_l1_reverse"]
    wrong = {**theirs.state_dict(), "weight_hh_l1_reverse": torch.zeros(7, 2)}
    for state, entry in (
        (missing, r"Missing key.*0\.weight_hh_l1_reverse"),
        ({**theirs.state_dict(), "own": torch.ones(1)}, r"Unexpected key.*0\.own"),
        (wrong, r"size mismatch for 0\.weight_hh_l1_reverse"),
    ):
        model = torch.nn.Sequential(AS_TORCH[name][1](D, N, 2, bidirectional=True, bias=bias))
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
def test_what_programs_call(name):
    """flatten_parameters, all_weights, zero_grad, half and double precision, functional calls, parametrised weights."""
    theirs, ours = twins(name, D, N, 2)
    x = draw(T, B, D)
    assert ours.flatten_parameters() is None
    assert len(ours.all_weights) == len(theirs.all_weights)
    assert {id(p) for own in ours.all_weights for p in own} == {id(p) for p in ours.parameters()}
    for word in ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"):
        assert getattr(ours, word) == getattr(theirs, word)
    ours(x)[0].sum().backward()
    ours.zero_grad()
    assert all(p.grad is None for p in ours.parameters())
    narrow = copy.deepcopy(ours).float()
    assert narrow(x.float())[0].dtype is torch.float32
    assert_close(narrow(x.float())[0].double(), ours(x)[0], rtol=1e-4, atol=1e-5)
    assert narrow.double()(x)[0].dtype is torch.float64
    halved = {key: p.detach() / 2 for key, p in ours.named_parameters()}
    found = torch.func.functional_call(ours, halved, (x,))
    with torch.no_grad():
        for layer in (theirs, ours):
            for p in layer.parameters():
                p.div_(2)
    assert_close(found, ours(x), rtol=0, atol=0)
    agree((theirs, ours), x)


@each_of_torch
def test_weight_norm(name):
    """A parametrised input weight, as torch's own tests parametrise it."""
    theirs, ours = twins(name)
    x = draw(T, B, D)
    expected = ours(x)
    torch.nn.utils.parametrizations.weight_norm(ours, "weight_ih_l0")
    assert_close(ours(x), expected, **EXACT)
    ours(x)[0].sum().backward()
    held = ours.parametrizations.weight_ih_l0
    assert held.original0.grad.any() and held.original1.grad.any()
    torch.nn.utils.parametrize.remove_parametrizations(ours, "weight_ih_l0")
    assert_close(ours(x), theirs(x), **EXACT)


@each_of_torch
def test_training_and_evaluation_agree(name):
    """Without dropout, with gradients recorded or not, in inference mode."""
    _, ours = twins(name, D, N, 2, bidirectional=True)
    x = draw(T, B, D)
    expected = ours(x)
    with torch.no_grad():
        assert_close(ours(x), tree_map(torch.detach, expected), rtol=0, atol=0)
    with torch.inference_mode():
        assert_close(ours.eval()(x), tree_map(torch.detach, expected), rtol=0, atol=0)
    assert_close(ours(x), expected, rtol=0, atol=0)


@each_of_torch
def test_frozen_weights(name):
    """A frozen layer passes gradients on to its input, and keeps none."""
    _, ours = twins(name, D, N, 2)
    x = draw(T, B, D).requires_grad_()
    ours(x)[0].sum().backward()
    expected = x.grad.clone()
    x.grad = None
    ours.zero_grad()
    ours.requires_grad_(False)
    ours(x)[0].sum().backward()
    assert_close(x.grad, expected, **EXACT)
    assert all(p.grad is None for p in ours.parameters())


def test_nonlinearities():
    """torch's two by name, and a ValueError for what is none."""
    x = draw(T, B, D)
    for word in ("tanh", "relu"):
        agree(twins("rnn", D, N, nonlinearity=word), x)
    assert AS_TORCH["rnn"][1](D, N).nonlinearity == torch.nn.RNN(D, N).nonlinearity == "tanh"
    for make in AS_TORCH["rnn"]:
        with pytest.raises(ValueError, match="garbage"):
            make(D, N, nonlinearity="garbage")


@each_of_torch
def test_no_warning_in_ordinary_use(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, ours = twins(name, D, N, 2, dropout=0.1)
        ours(draw(T, B, D))[0].sum().backward()
