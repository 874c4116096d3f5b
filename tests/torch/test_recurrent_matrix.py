"""`set_recurrent_matrix`: the inverse map of every layer, and what it refuses."""

import functools

import pytest
import torch

import isometry.torch as it
from layers import B, D, N, T, build, close, draw

#: Layers whose map reaches the W of another layer of the same kind.
INVERSE = {
    "ornn": it.nn.ORNN,
    "ornn-few": functools.partial(it.nn.ORNN, reflections=N - 1),
    "unitary-ornn": functools.partial(it.nn.UnitaryORNN, reflections=N - 1),
    "scornn": it.nn.ScoRNN,
    "exprnn": it.nn.ExpRNN,
    "exprnn-complex": functools.partial(it.nn.ExpRNN, complex=True),
    "kru": it.nn.KRU,
    "full-capacity-urnn": it.nn.FullCapacityURNN,
    "rnn": it.nn.RNN,
    "rnn-transition": functools.partial(it.nn.RNN, transition=it.Exponential.random),
    "goru-cayley": functools.partial(it.nn.GORU, transition="cayley"),
    "goru-exponential": functools.partial(it.nn.GORU, transition="exponential"),
    "goru-householder": functools.partial(it.nn.GORU, transition="householder"),
}


@pytest.mark.parametrize("name", INVERSE)
def test_a_layer_takes_the_matrix_of_another(name):
    """All layers and directions; the states are then those of the other layer."""
    torch.manual_seed(0)
    other, layer = (INVERSE[name](D, N, 2, bidirectional=True, dtype=torch.float64) for _ in range(2))
    layer.load_state_dict({**layer.state_dict(), **{k: v for k, v in other.state_dict().items() if "ih" in k}})
    for k in range(2):
        for reverse in (False, True):
            w = other.recurrent_matrix(k, reverse)
            layer.set_recurrent_matrix(w, k, reverse)
            torch.testing.assert_close(layer.recurrent_matrix(k, reverse), w, rtol=0, atol=1e-10)
    assert all(p.requires_grad and p.is_leaf for p in layer.parameters())


def test_the_states_are_those_of_the_matrix():
    layer, w, x = it.nn.ORNN(D, N, dtype=torch.float64), torch.linalg.qr(draw(N, N))[0], draw(T, B, D)
    layer.set_recurrent_matrix(w)
    expected = it.recurrence(it.Dense(w), x, layer.weight_ih_l0, bias=layer.bias_l0, activation="leaky_relu")
    close(layer(x)[0], expected)


def test_what_no_parameters_reach():
    """The parameters stay as they were."""
    w = torch.linalg.qr(draw(N, N))[0]
    flipped = torch.cat((-w[:1], w[1:]))
    rotation, reflection = (w, flipped) if torch.linalg.det(w) > 0 else (flipped, w)
    cases = {
        "exprnn": (reflection, "rotation|det"),
        "scornn": (2 * w, "w"),
        "ornn": (w[:2], "shape"),
        "eurnn": (w, "reached|bipartite|layers|w"),
        "urnn": (w, "no map from W"),
        "soft-ornn": (w, "no map from W"),
        "full-capacity-urnn": (2 * w, "unitary"),
    }
    for name, (matrix, match) in cases.items():
        layer = build(name)
        before = {key: value.clone() for key, value in layer.state_dict().items()}
        with pytest.raises(ValueError, match=match):
            layer.set_recurrent_matrix(matrix)
        assert all(torch.equal(value, before[key]) for key, value in layer.state_dict().items())
    few = it.nn.ORNN(D, N, reflections=2, dtype=torch.float64)
    with pytest.raises(ValueError, match="not reached by the vectors"):
        few.set_recurrent_matrix(rotation)
    with pytest.raises(ValueError, match="must be real"):
        build("scornn").set_recurrent_matrix(w + 0j)
    with pytest.raises(TypeError, match="w must be a torch.Tensor"):
        build("scornn").set_recurrent_matrix(w.numpy())
    with pytest.raises(IndexError):
        build("scornn").set_recurrent_matrix(w, 1)
