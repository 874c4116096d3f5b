"""What holds for every layer of a cell: the cell with stored parameters, their names, shapes and initial values."""

import numpy as np
import pytest
import torch

from layers import CELL_LAYERS, FORMS, B, D, N, T, draw, formed, is_the_textbook_loop, named
from registry.cells import CELLS

FORMS = {form: own for form, own in FORMS.items() if own[0] in CELL_LAYERS}
AS_TORCH_STORES = {"lstm": {"weight_ih": "4n d", "weight_hh": "4n n", "bias_ih": "4n", "bias_hh": "4n"}}
GLOROT = ("gru", "goru", "rum")
LAYER_ALONE = {"transition", "capacity", "nonlinearity"}  # keywords that the function of a cell does not have
PARAMETERS = {"w": "weight_hh", "u": "weight_ih", "b": "bias"}
OF_TRANSITION = {
    "goru": {"theta": (N - 1,)},
    "goru-householder": {"vectors": (N, N - 1)},
    "goru-cayley": {"upper": (N * (N - 1) // 2,), "signs": (N,)},
    "goru-exponential": {"upper": (N * (N - 1) // 2,)},
}


def stored(kind):
    """The arrays of a cell that belong to no sequence, by the names of the parameters."""
    own = {name: axes for name, axes in CELLS[kind].arrays.items() if axes[0] not in "TB"}
    return AS_TORCH_STORES.get(kind) or {PARAMETERS.get(name, name): axes for name, axes in own.items()}


def shapes(form, d):
    """The parameters of one layer and direction, of inputs with d features."""
    sizes = {"n": N, "d": d}
    size = lambda axis: int(axis[:-1] or 1) * sizes[axis[-1]] if axis[-1] in sizes else int(axis)
    own = {name: tuple(map(size, axes.split())) for name, axes in stored(FORMS[form][0]).items()}
    second = {"hidden_bias": (3, N)} if form == "gru-after" else {}
    return own | second | OF_TRANSITION.get(form, {})


of_own_parameters = pytest.mark.parametrize("form", [form for form in FORMS if form not in AS_TORCH_STORES])


@of_own_parameters
@pytest.mark.parametrize("nonlinearity", ["tanh", "modrelu"])
def test_the_layer_is_its_cell(form, nonlinearity):
    """Every sequence alone, by the definition in NumPy; with torch's parameters a layer is compared with torch's."""
    kind = FORMS[form][0]
    make, cell = CELL_LAYERS[kind], CELLS[kind]
    own = {"nonlinearity": nonlinearity} if "nonlinearity" in make._own_keywords else {}
    layer = formed(form, 2, bidirectional=True, **own)
    keywords = {name: getattr(layer, name) for name in set(make._own_keywords) - LAYER_ALONE}
    keywords |= {"activation": nonlinearity} if own else {}
    arrays = {PARAMETERS.get(name, name): name for name in (*cell.arrays, "hidden_bias", "activation_bias")}

    def run(suffix, y, h):
        p = {name.removesuffix(suffix): t.numpy() for name, t in layer.state_dict().items() if name.endswith(suffix)}
        if form == "gru-after":  # the second biases of z and r add to the first
            second = p["hidden_bias"]
            p["bias"], p["hidden_bias"] = p["bias"] + second * [[1], [1], [0]], second[2]
        given = {arrays[name]: a for name, a in p.items() if name in arrays}
        given |= dict(zip(cell.first, np.split(h.numpy()[None], len(cell.first), -1), strict=True))
        if hasattr(layer, "recurrent_matrix"):
            w = layer.recurrent_matrix(int(suffix[2]), suffix.endswith("reverse"))
            given["transition"] = w.detach().numpy()
        states = torch.from_numpy(cell.states(x=y.detach().numpy()[:, None], **given, **keywords))[: len(y), 0]
        return states[:, :N], states[-1]

    is_the_textbook_loop(layer, draw(4, 3, *layer._state, seed=1), run)


@pytest.mark.parametrize("form", FORMS)
def test_names_and_shapes_of_the_state_dict(form):
    """Of two layers and directions; without biases none of them."""
    kind, own = FORMS[form]
    first = dict.fromkeys(CELLS[kind].first, (N,))
    make = CELL_LAYERS[kind]
    own = {**own, "nonlinearity": "tanh"} if "nonlinearity" in make._own_keywords else own
    layer = make(D, N, 2, bidirectional=True, trainable_h0=True, **own)
    expected = named(lambda d: {**shapes(form, d), **first})
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    plain = make(D, N, bias=False, **own)
    assert {key.removesuffix("_l0") for key in plain.state_dict()} == {k for k in shapes(form, D) if "bias" not in k}
    if "nonlinearity" in make._own_keywords:
        assert make(D, N, **{**own, "nonlinearity": "modrelu"}).activation_bias_l0.shape == (N,)
        assert make(D, N, **{**own, "nonlinearity": "modrelu_realrep"}).activation_bias_l0.shape == (N // 2,)


@pytest.mark.parametrize("form", FORMS)
def test_initial_values(form):
    """Of Glorot, within sqrt(6 / (rows of a gate + columns)) and biases zero, or of torch; initial states zero."""
    kind, own = FORMS[form]
    as_torch = kind not in GLOROT
    torch.manual_seed(0)
    for key, p in CELL_LAYERS[kind](D, N, 2, trainable_h0=True, **own).named_parameters():
        if "weight" in key or ("bias" in key and as_torch):
            units = CELLS[kind].units(N, D if "_l0" in key else N)
            bound = units**-0.5 if as_torch else (6 / (N + p.shape[-1])) ** 0.5
            assert 0.5 * bound < p.abs().max() <= bound
        elif "bias" in key or key[:2] in CELLS[kind].first:
            assert not p.any()


@pytest.mark.parametrize("kind", CELL_LAYERS)
def test_refusals(kind):
    make = CELL_LAYERS[kind]
    state = draw(1, B, N).float() + 0j
    with pytest.raises(TypeError, match="hx must be real"):
        make(D, N)(draw(T, B, D).float(), state if len(CELLS[kind].first) == 1 else (state.real, state))
    if kind == "gru":
        assert repr(make(D, N, 2, reset="after")) == "GRU(3, 6, num_layers=2, reset='after')"
    if "nonlinearity" not in make._own_keywords:
        with pytest.raises(TypeError, match="nonlinearity"):
            make(D, N, nonlinearity="relu")
    else:
        with pytest.raises(ValueError, match="nonlinearity must be one of"):
            make(D, N, nonlinearity="sine")
        with pytest.raises(ValueError, match="hidden_size must"):
            make(D, 5, nonlinearity="oplu")
    if "reset" in make._own_keywords:
        with pytest.raises(ValueError, match="reset must be 'before' or 'after', not 'never'"):
            make(D, N, reset="never")
