"""What holds for every layer with gates: its cell with stored parameters, their names, shapes and initial values."""

import pytest
import torch

import isometry.torch as it
from layers import FORMS, GATED, B, D, N, T, draw, formed, is_the_textbook_loop, named
from registry.cells import CELLS

GATES = {"w": "weight_hh", "u": "weight_ih", "b": "bias", "activation_bias": "activation_bias"}
EMBEDDED = {**GATES, "embed_weight": "embed_weight", "embed_bias": "embed_bias"}
#: kind -> the arrays of its cell by the names of its parameters, and the settings of the cell that are its attributes
CELL = {"gru": (GATES, ["reset"]), "goru": (GATES, ["reset"]), "rum": (EMBEDDED, ["lam", "eta"])}
PACKED = (N * (N - 1) // 2,)
#: form -> the shapes of the parameters of one layer and direction, of inputs with d features
SHAPES = {
    "gru": lambda d: {"weight_hh": (3, N, N), "weight_ih": (3, N, d), "bias": (3, N)},
    "goru": lambda d: {"theta": (N - 1,), **of_goru(d)},
    "goru-householder": lambda d: {"vectors": (N, N - 1), **of_goru(d)},
    "goru-cayley": lambda d: {"upper": PACKED, "signs": (N,), **of_goru(d)},
    "goru-exponential": lambda d: {"upper": PACKED, **of_goru(d)},
    "lstm": lambda d: {"weight_ih": (4 * N, d), "weight_hh": (4 * N, N), "bias_ih": (4 * N,), "bias_hh": (4 * N,)},
    "rum": lambda d: {
        "weight_hh": (2 * N, N),
        "weight_ih": (2 * N, d),
        "bias": (2 * N,),
        "embed_weight": (N, d),
        "embed_bias": (N,),
    },
}


def of_goru(d):
    return {"weight_hh": (2, N, N), "weight_ih": (3, N, d), "bias": (3, N)}


@pytest.mark.parametrize("nonlinearity", ["tanh", "modrelu"])
@pytest.mark.parametrize("form", [form for form, (kind, _) in FORMS.items() if kind in CELL and form != "gru-after"])
def test_the_layer_is_its_cell(form, nonlinearity):
    """Every sequence alone, by the definition in NumPy; with reset "after" a GRU is compared with torch's."""
    kind = FORMS[form][0]
    names, settings = CELL[kind]
    own = {} if kind == "gru" else {"nonlinearity": nonlinearity}  # a GRU has tanh alone
    layer = formed(form, 2, bidirectional=True, **own)
    keywords = {name: getattr(layer, name) for name in settings}
    keywords["activation"] = getattr(layer, "nonlinearity", "tanh")

    def run(suffix, y, h):
        p = {name.removesuffix(suffix): t.numpy() for name, t in layer.state_dict().items() if name.endswith(suffix)}
        given = {array: p[name] for array, name in names.items() if name in p}
        if kind == "goru":
            w = layer.recurrent_matrix(int(suffix[2]), suffix.endswith("reverse"))
            given["transition"] = w.detach().numpy()
        states = CELLS[kind].states(x=y.detach().numpy()[:, None], h0=h.numpy()[None], **given, **keywords)
        found = torch.from_numpy(states)[: len(y), 0]
        return found, found[-1]

    is_the_textbook_loop(layer, draw(4, 3, N, seed=1), run)


@pytest.mark.parametrize("form", SHAPES)
def test_names_and_shapes_of_the_state_dict(form):
    """Of two layers and directions; without biases none of them."""
    kind, own = FORMS[form]
    first = {"h0": (N,), "c0": (N,)} if kind == "lstm" else {"h0": (N,)}
    make = getattr(it.nn, kind.upper())
    layer = make(D, N, 2, bidirectional=True, trainable_h0=True, **own)
    expected = named(lambda d: {**SHAPES[form](d), **first})
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    plain = make(D, N, bias=False, **own)
    assert {key.removesuffix("_l0") for key in plain.state_dict()} == {k for k in SHAPES[form](D) if "bias" not in k}
    if kind in ("goru", "rum"):
        assert make(D, N, nonlinearity="modrelu", **own).activation_bias_l0.shape == (N,)
        assert make(D, N, nonlinearity="modrelu_realrep", **own).activation_bias_l0.shape == (N // 2,)


@pytest.mark.parametrize("form", [form for form in SHAPES if form != "lstm"])
def test_initial_values(form):
    """Weights uniform within sqrt(6 / (rows of a gate + columns)), biases and initial states zero."""
    kind, own = FORMS[form]
    for key, p in getattr(it.nn, kind.upper())(D, N, 2, trainable_h0=True, **own).named_parameters():
        if "weight" in key:
            bound = (6 / (N + p.shape[-1])) ** 0.5
            assert 0.5 * bound < p.abs().max() <= bound
        elif "bias" in key or key.startswith("h0"):
            assert not p.any()


@pytest.mark.parametrize("kind", [kind for kind in GATED if kind != "lstm"])
def test_refusals(kind):
    make = getattr(it.nn, kind.upper())
    with pytest.raises(TypeError, match="hx must be real"):
        make(D, N)(draw(T, B, D).float(), draw(1, B, N).float() + 0j)
    if kind == "gru":
        assert repr(make(D, N, 2, reset="after")) == "GRU(3, 6, num_layers=2, reset='after')"
        with pytest.raises(TypeError, match="nonlinearity"):
            make(D, N, nonlinearity="relu")
    else:
        with pytest.raises(ValueError, match="nonlinearity must be one of"):
            make(D, N, nonlinearity="sine")
        with pytest.raises(ValueError, match="hidden_size must"):
            make(D, 5, nonlinearity="oplu")
    if kind != "rum":
        with pytest.raises(ValueError, match="reset must be 'before' or 'after', not 'never'"):
            make(D, N, reset="never")
