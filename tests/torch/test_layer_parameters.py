"""What the layers store: names, shapes and initial values of their parameters, and the matrices these give."""

import pytest
import torch

import isometry.torch as it
import tolerance
from derivatives import compiled
from layers import CELL_LAYERS, FORMS, KINDS, LAYERS, B, D, N, T, build, close, draw, formed, named
from registry.cells import CELLS

GLOROT = ("gru", "goru", "rum")
#: Axes of the arrays of one layer and direction, d features and n = 6 units; from the third on those of its W.
STORED = [
    ("ornn", {}, "weight_ih n d, bias n", "vectors n n"),
    ("ornn", {"reflections": 2, "nonlinearity": "modrelu"}, "weight_ih n d, activation_bias n", "vectors n 2"),
    ("ornn", {"nonlinearity": "modrelu_realrep"}, "weight_ih n d, activation_bias 3", "vectors n n"),
    ("unitary-ornn", {}, "weight_ih n d 2, activation_bias n", "vectors n 5 2, phases n"),
    ("scornn", {}, "weight_ih n d, bias n, signs n", "upper 15"),
    ("scurnn", {"nonlinearity": "tanh"}, "weight_ih n d 2, bias n 2", "upper 15 2, diagonal n, phases n"),
    ("soft-ornn", {}, "weight_ih n d, bias n", "u n n, logits n, v n n"),
    ("kru", {}, "weight_ih n d 2, activation_bias n", "factors_0 2 2 2, factors_1 3 3 2"),
    ("kru", {"complex": False, "factor_sizes": (6,), "nonlinearity": "tanh"}, "weight_ih n d, bias n", "factors_0 n n"),
    ("eurnn", {"capacity": 3}, "weight_ih n d 2, activation_bias n", "theta 8, phi 8, phases n"),
    ("eurnn", {"complex": False}, "weight_ih n d, activation_bias n", "theta 5"),
    ("exprnn", {}, "weight_ih n d, bias n", "upper 15"),
    ("exprnn-complex", {"nonlinearity": "tanh"}, "weight_ih n d 2, bias n 2", "upper 15 2, diagonal n"),
    ("full-capacity-urnn", {}, "weight_ih n d 2, activation_bias n", "weight n n 2"),
    ("rnn", {"nonlinearity": "modrelu"}, "weight_ih n d, activation_bias n", "weight_hh n n"),
    ("lstm", {}, "weight_ih 4n d, weight_hh 4n n, bias_ih 4n, bias_hh 4n", ""),
    ("gru-after", {}, "weight_hh 3 n n, weight_ih 3 n d, bias 3 n, hidden_bias 3 n", ""),
]
GORU = "weight_hh 2 n n, weight_ih 3 n d, bias 3 n"
STORED += [
    ("goru", {}, GORU, "theta 5"),
    ("goru", {"capacity": 3}, GORU, "theta 8"),
    ("goru-householder", {}, GORU, "vectors n 5"),
    ("goru-cayley", {}, GORU + ", signs n", "upper 15"),
    ("goru-exponential", {}, GORU, "upper 15"),
]
# the arrays of a cell that belong to no sequence, by the names of the parameters
NAMES = {"w": "weight_hh", "u": "weight_ih", "b": "bias"}
STORED += [
    (
        kind,
        {},
        ", ".join(f"{NAMES.get(k, k)} {axes}" for k, axes in CELLS[kind].arrays.items() if axes[0] not in "TB"),
        "",
    )
    for kind in CELL_LAYERS
    if kind not in ("lstm", "goru")
]
CELL_FORMS = [form for form, (kind, _) in FORMS.items() if kind in CELL_LAYERS]


def made(form, *sizes, **keywords):
    """As it is drawn, pairs of states apart."""
    kind, own = FORMS.get(form, (form, {}))
    layer = {**KINDS, **CELL_LAYERS}[kind]
    plain = {"nonlinearity": "tanh"} if kind in CELL_LAYERS and "nonlinearity" in layer._own_keywords else {}
    return layer(*(sizes or (D, N)), **{**plain, **own, **keywords})


def shapes(text, d):
    """name -> shape."""
    sizes = {"n": N, "d": d}
    size = lambda axis: int(axis[:-1] or 1) * sizes[axis[-1]] if axis[-1] in sizes else int(axis)
    return {name: tuple(map(size, axes)) for name, *axes in map(str.split, text.split(",")) if name}


@pytest.mark.parametrize(("form", "keywords", "others", "own"), STORED, ids=lambda v: v if isinstance(v, str) else "")
def test_names_and_shapes(form, keywords, others, own):
    """Of two layers and directions; the parameters of W in their order; without biases none of them."""
    layer = made(form, D, N, 2, bidirectional=True, trainable_h0=True, **keywords)
    first = CELLS[form].first if form in CELLS else ("h0",)
    initial = dict.fromkeys(first, (N, 2) if layer.is_complex else (N,))
    expected = named(lambda d: shapes(others, d) | (shapes(own, d) if own else {}) | initial)
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    assert set(dict(layer.named_buffers())) == {key for key in expected if key.startswith("signs")}
    ends = ("_l0", "_l0_reverse", "_l1", "_l1_reverse")
    wanted = [getattr(layer, name + end) for end in ends for name in (shapes(own, D) if own else ())]
    assert [id(p) for p in layer.recurrent_parameters()] == [id(p) for p in wanted]
    plain = made(form, D, N, 2, bidirectional=True, trainable_h0=True, bias=False, **keywords)
    assert set(plain.state_dict()) == {key for key in expected if "bias" not in key}


@pytest.mark.parametrize("kind", [kind for kind in CELL_LAYERS if "nonlinearity" in CELL_LAYERS[kind]._own_keywords])
def test_the_bias_of_an_activation(kind):
    for name, units in (("modrelu", N), ("modrelu_realrep", N // 2)):
        assert CELL_LAYERS[kind](D, N, nonlinearity=name).activation_bias_l0.shape == (units,)


def test_a_mesh_of_powers_of_two():
    for layer in (it.nn.EURNN(D, 8, layout="fft"), it.nn.EURNN(D, 8, layout="fft", capacity=3)):
        assert layer.capacity == 3 and layer.theta_l0.shape == (12,)


@pytest.mark.parametrize("form", [*LAYERS, *CELL_FORMS])
def test_initial_values(form):
    """Of Glorot, within sqrt(6 / (rows of a gate + columns)) and biases zero, or of torch; initial states zero."""
    kind = FORMS.get(form, (form, {}))[0]
    layer, as_torch = made(form, D, N, 2, trainable_h0=True), kind in CELL_LAYERS and kind not in GLOROT
    initial = CELLS[kind].first if kind in CELLS else ("h0",)
    for key, p in layer.named_parameters():
        if "weight" in key or ("bias" in key and as_torch):
            bound = (6 / (N + p.shape[-1 - layer.is_complex])) ** 0.5
            bound = CELLS[kind].units(N, D if "_l0" in key else N) ** -0.5 if as_torch else bound
            assert 0.5 * bound < p.abs().max() <= bound
        elif "bias" in key or key.startswith(initial):
            assert not p.any()
        else:
            assert p.any() or key.startswith(("diagonal", "logits"))


@pytest.mark.parametrize("name", KINDS)
def test_the_seed_decides_the_initial_values(name):
    torch.manual_seed(1)
    layer = KINDS[name](D, N, 2, trainable_h0=True)
    before = {key: p.clone() for key, p in layer.named_parameters()}
    torch.manual_seed(1)
    layer.reset_parameters()
    assert all(torch.equal(p, before[key]) for key, p in layer.named_parameters())


# ---------------------------------------------------------------- W

#: W of the parameters and buffers.
MATRICES = {
    "goru": lambda layer: it.Mesh(layer.theta_l0, n=N, layers=2),
    "goru-householder": lambda layer: it.Householder.from_trapezoid(layer.vectors_l0),
    "goru-cayley": lambda layer: it.Cayley(layer.upper_l0, signs=layer.signs_l0),
    "goru-exponential": lambda layer: it.Exponential(layer.upper_l0),
}


@pytest.mark.parametrize("form", MATRICES)
def test_the_transition(form):
    layer = formed(form)
    close(layer.recurrent_matrix(), MATRICES[form](layer).matrix(), "W")
    if form == "goru-cayley":
        assert layer.signs_l0.tolist() == [1.0] * 3 + [-1.0] * 3


def test_initial_vectors_of_the_ornn():
    """oRNN with m = n: unit columns below a zero triangle, u_1 = +1."""
    u = it.nn.ORNN(D, N, dtype=torch.float64).vectors_l0.detach()
    assert u[-1, -1] == 1
    assert not torch.triu(u, 1).any()
    close(torch.linalg.vector_norm(u, dim=0), torch.ones(N, dtype=torch.float64), "column norms")


def test_soft_sign_is_clamped_and_comes_back():
    """s = u_1 within [-1, 1]; outside it is +-1, and the gradient of s still moves u_1."""
    layer = build("ornn", sign="soft")
    ct = draw(N, N)
    for u1, s in ((0.3, 0.3), (1.7, 1.0), (-40.0, -1.0)):
        with torch.no_grad():
            layer.vectors_l0[-1, -1] = u1
        w = layer.recurrent_matrix()
        expected = it.Householder(layer.vectors_l0.detach()[:, :-1].tril(), sign=s)
        close(w, expected.matrix(), "W")
        assert torch.autograd.grad((w * ct).sum(), layer.vectors_l0)[0][-1, -1] != 0


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.0])
def test_singular_values_stay_within_the_margin(margin):
    """Wherever the parameters are; with zero logits W is orthogonal, its bases are kept so."""
    layer = it.nn.SoftORNN(D, N, margin=margin, dtype=torch.float64)
    with torch.no_grad():
        for p in layer.recurrent_parameters():
            p.add_(3 * draw(*p.shape))
        sigma = 1 + margin * (layer.logits_l0 / 2).tanh()
        close(torch.linalg.svdvals(layer.recurrent_matrix()), sigma.sort(descending=True).values, "singular values")
        layer.logits_l0.zero_()
    assert it.orthogonality_error(layer.recurrent_matrix()) < tolerance.UNITARITY


def test_the_penalty_of_the_kru_is_that_of_its_factors():
    for complex_ in (False, True):
        layer = it.nn.KRU(D, N, 2, bidirectional=True, complex=complex_, dtype=torch.float64)
        assert layer.penalty() < 1e-25
        with torch.no_grad():
            for p in layer.recurrent_parameters():
                p.add_(0.1 * draw(*p.shape))
        pairs = [p if not complex_ else torch.view_as_complex(p) for p in layer.recurrent_parameters()]
        excess = [(w.mH @ w - torch.eye(len(w))).abs().square().sum() for w in pairs]
        close(layer.penalty(), sum(excess), "penalty")
        grads = torch.autograd.grad(layer.penalty(), list(layer.recurrent_parameters()))
        for w, grad in zip(pairs, grads, strict=True):
            expected = 4 * w @ (w.mH @ w - torch.eye(len(w)))
            close(grad, torch.view_as_real(expected) if complex_ else expected, "gradient")
    assert it.nn.KRU(D, 12).factor_sizes == (2, 2, 3)


def test_a_loaded_diagonal_is_the_layers_own():
    layer = it.nn.ScoRNN(D, N, negative_ones=1)
    layer.load_state_dict(it.nn.ScoRNN(D, N, negative_ones=4).state_dict())
    assert layer.negative_ones == 4
    layer.reset_parameters()
    assert (layer.signs_l0 < 0).sum() == 4


EMPTY = [("unitary-ornn", 4, {"reflections": 0})]
EMPTY += [(name, 1, {}) for name in ("unitary-ornn", "scornn", "scurnn", "ornn", "soft-ornn")]


@pytest.mark.parametrize(("name", "n", "keywords"), EMPTY)
def test_transitions_with_arrays_of_no_entries(name, n, keywords):
    """They run, compiled too, and have gradients if there is anything to train; from NumPy as from torch."""
    layer, twin = (KINDS[name](D, n, dtype=torch.float64, **keywords) for _ in range(2))
    for key, p in twin.named_parameters():
        p.data = torch.from_numpy(getattr(layer, key).detach().numpy().copy())
    x, outputs = draw(T, B, D), []
    for model in (layer, twin):
        outputs.append(model(x)[0])
        outputs[-1].abs().square().sum().backward()
        assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())
    close(outputs[1], outputs[0])
    close(compiled(twin)(x)[0], outputs[0], "compiled")
    for p, q in zip(layer.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)
