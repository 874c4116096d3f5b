"""`set_recurrent_matrix`: the inverse map of every layer, and what it refuses."""

import functools
import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import isometry.torch as it
from layers import D, N, build, draw
from support import structure


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
    with pytest.raises(TypeError, match="w must be a dense"):
        build("scornn").set_recurrent_matrix(build("scornn").recurrent_matrix().detach().to_sparse())
    with pytest.raises(IndexError):
        build("scornn").set_recurrent_matrix(w, 1)


#: Sizes on both sides of every change of algorithm, and of what float32 and half precision can tell apart.
SIZES = (1, 2, 3, 8, 9, 17, 34)
PRECISIONS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
#: Layers of maps that reach one determinant alone, as they are made: 1 or that of their signs.
ROTATIONS = ("scornn", "exprnn", "goru-cayley", "goru-exponential", "rnn-transition", "rnn-cayley")
#: Layers whose map reaches the W of another layer of the same kind.
MADE = {
    "ornn": it.nn.ORNN,
    "unitary-ornn": lambda d, n, *sizes, **keywords: it.nn.UnitaryORNN(d, n, *sizes, reflections=n - 1, **keywords),
    "scornn": it.nn.ScoRNN,
    "exprnn": it.nn.ExpRNN,
    "exprnn-complex": functools.partial(it.nn.ExpRNN, complex=True),
    "kru": it.nn.KRU,
    "full-capacity-urnn": it.nn.FullCapacityURNN,
    "rnn": it.nn.RNN,
    "rnn-transition": functools.partial(it.nn.RNN, transition=it.Exponential.random),
    "rnn-cayley": functools.partial(it.nn.RNN, transition=it.Cayley.random),
    **{
        f"goru-{name}": functools.partial(it.nn.GORU, transition=name)
        for name in ("cayley", "exponential", "householder")
    },
}
each_made = pytest.mark.parametrize("name", MADE)


def made(name, n, dtype):
    """A layer; None where there is none of this precision."""
    try:
        return MADE[name](1, n, dtype=dtype)
    except TypeError as error:
        assert "half precision has no complex numbers" in str(error)
        return None


def reach(n, dtype, w):
    """How far W may be from w, in Frobenius norm: what the documentation states."""
    if dtype in (torch.float16, torch.bfloat16):
        return 2 * n * torch.finfo(dtype).eps
    return float(torch.linalg.norm(w)) * (torch.finfo(dtype).eps + 32 * n**0.5 * torch.finfo(dtype).eps)


def distance(layer, w):
    """Of W, in the precision of the computation."""
    with torch.no_grad():
        return float(torch.linalg.norm(layer._transition("_l0").matrix().to(w.dtype) - w))


@each_made
def test_its_own_matrix_and_that_of_another_layer(name):
    """In every precision and size; its own changes no bit."""
    for n in SIZES:
        for dtype in PRECISIONS:
            layer, other = made(name, n, dtype), made(name, n, torch.float64)
            if layer is None:
                continue
            before = {key: t.clone() for key, t in layer.state_dict().items()}
            layer.set_recurrent_matrix(layer.recurrent_matrix())
            assert all(torch.equal(t, before[key]) for key, t in layer.state_dict().items())
            w = other.recurrent_matrix().detach()
            if name == "rnn-cayley":  # of the same signs
                layer.transition_l0.load_state_dict(other.transition_l0.state_dict())
                nn.init.zeros_(layer.transition_l0.upper)
            layer.set_recurrent_matrix(w)
            assert distance(layer, w) <= reach(n, dtype, w), (n, dtype)
            rounded = other.to(dtype).recurrent_matrix().detach()
            layer.set_recurrent_matrix(rounded)
            w = rounded.to(w.dtype)
            assert distance(layer, w) <= reach(n, dtype, w) + n**0.5 * torch.finfo(dtype).eps, (n, dtype)


@pytest.mark.parametrize("name", [name for name in MADE if name != "rnn-cayley"])
def test_every_layer_and_direction(name):
    other, layer = (MADE[name](D, N, 2, bidirectional=True, dtype=torch.float64) for _ in range(2))
    for k, reverse in itertools.product(range(2), (False, True)):
        w = other.recurrent_matrix(k, reverse)
        layer.set_recurrent_matrix(w, k, reverse)
        torch.testing.assert_close(layer.recurrent_matrix(k, reverse), w, rtol=0, atol=1e-10)
    assert all(p.requires_grad and p.is_leaf for p in layer.parameters())


@each_made
def test_orthogonal_matrices_with_structure(name):
    """What is accepted is reached, and what is refused changes nothing."""
    rng, accepted = np.random.default_rng(0), 0
    for k, kind in enumerate(structure.CLASSES):
        n = SIZES[k % len(SIZES)]
        layer = made(name, n, PRECISIONS[k % 2])
        complex_ = np.complex128 if layer.is_complex else np.float64
        w = torch.from_numpy(np.linalg.qr(structure.draw(kind, rng, (n, n), complex_))[0])
        before = {key: t.clone() for key, t in layer.state_dict().items()}
        try:
            layer.set_recurrent_matrix(w)
            assert distance(layer, w) <= reach(n, PRECISIONS[k % 2], w), (kind, n)
            accepted += 1
        except ValueError:
            assert all(torch.equal(t, before[key]) for key, t in layer.state_dict().items())
    assert accepted > 5 or name == "kru"


@pytest.mark.parametrize("name", ROTATIONS)
def test_the_other_determinant_is_refused(name):
    """At every size and in every precision; so is a matrix that is orthogonal to a few digits."""
    for n in (*SIZES, 130):
        for dtype in PRECISIONS if n < 130 else PRECISIONS[3:]:
            layer = made(name, n, dtype)
            w = it.Householder.haar(n, dtype=torch.float64).matrix()
            own = torch.linalg.slogdet(layer.recurrent_matrix().detach().double())[0]
            w[0] *= -own * torch.linalg.slogdet(w)[0]
            before = {key: t.clone() for key, t in layer.state_dict().items()}
            for wrong in (w, w.to(dtype), 1.05 * layer.recurrent_matrix(), torch.nan * w):
                with pytest.raises(ValueError, match="^w must|^w is not reached|^signs do not fit"):
                    layer.set_recurrent_matrix(wrong)
            assert all(torch.equal(t, before[key]) for key, t in layer.state_dict().items())


def test_computed_parameters_are_not_set():
    """By a hook or a parametrization; a hook that changes them in place says which W is reached."""
    w, kinds = torch.linalg.qr(draw(N, N))[0], (nn.utils.weight_norm, nn.utils.parametrizations.weight_norm)
    for name, weight in (("ornn", "vectors_l0"), ("full-capacity-urnn", "weight_l0"), ("rnn", "weight_hh_l0")):
        for change in (*kinds, prune.identity):
            layer = build(name)
            change(layer, weight)
            with pytest.raises(RuntimeError, match=f"set_recurrent_matrix cannot set {weight}: a hook or"):
                layer.set_recurrent_matrix(w)
    layer = build("rnn")
    layer.register_forward_pre_hook(lambda layer, _: layer.weight_hh_l0.detach().clamp_(-0.1, 0.1))
    with pytest.raises(ValueError, match="not reached"):
        layer.set_recurrent_matrix(w)
