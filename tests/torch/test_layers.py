"""Properties of the layers beyond torch.nn.RNN and the laws of their operators: parameters, options, training."""

import subprocess
import sys

import pytest
import torch

import distributed_work
import isometry.torch as it
import tolerance
from derivatives import compiled
from layers import (
    COMPLEX,
    FORMS,
    KINDS,
    LAYERS,
    NAMES,
    SOFT,
    B,
    D,
    N,
    T,
    build,
    close,
    draw,
    each_kind,
    each_layer,
    formed,
    named,
    states,
)

# ---------------------------------------------------------------- parameters

STORED = {
    ("ORNN", ()): {"weight_ih": (N, D), "vectors": (N, N), "bias": (N,)},
    ("ORNN", (("reflections", 2), ("nonlinearity", "modrelu"))): {
        "weight_ih": (N, D),
        "vectors": (N, 2),
        "activation_bias": (N,),
    },
    ("ORNN", (("nonlinearity", "modrelu_realrep"),)): {
        "weight_ih": (N, D),
        "vectors": (N, N),
        "activation_bias": (N // 2,),
    },
    ("UnitaryORNN", ()): {
        "weight_ih": (N, D, 2),
        "vectors": (N, N - 1, 2),
        "phases": (N,),
        "activation_bias": (N,),
    },
    ("ScoRNN", ()): {"weight_ih": (N, D), "upper": (15,), "bias": (N,), "signs": (N,)},
    ("SoftORNN", ()): {"weight_ih": (N, D), "u": (N, N), "logits": (N,), "v": (N, N), "bias": (N,)},
    ("KRU", ()): {"weight_ih": (N, D, 2), "factors_0": (2, 2, 2), "factors_1": (3, 3, 2), "activation_bias": (N,)},
    ("KRU", (("complex", False), ("factor_sizes", (6,)), ("nonlinearity", "tanh"))): {
        "weight_ih": (N, D),
        "factors_0": (N, N),
        "bias": (N,),
    },
    ("ScuRNN", (("nonlinearity", "tanh"),)): {
        "weight_ih": (N, D, 2),
        "upper": (15, 2),
        "diagonal": (N,),
        "phases": (N,),
        "bias": (N, 2),
    },
    ("ExpRNN", ()): {"weight_ih": (N, D), "upper": (15,), "bias": (N,)},
    ("ExpRNN", (("complex", True), ("nonlinearity", "tanh"))): {
        "weight_ih": (N, D, 2),
        "upper": (15, 2),
        "diagonal": (N,),
        "bias": (N, 2),
    },
    ("FullCapacityURNN", ()): {"weight_ih": (N, D, 2), "weight": (N, N, 2), "activation_bias": (N,)},
}


@pytest.mark.parametrize(("cls", "keywords"), STORED, ids=lambda v: v if isinstance(v, str) else str(len(v)))
def test_names_and_shapes_of_the_state_dict(cls, keywords):
    layer = getattr(it.nn, cls)(D, N, 2, bidirectional=True, trainable_h0=True, **dict(keywords))
    stored = STORED[cls, keywords]
    complex_ = len(stored["weight_ih"]) == 3
    own = {**stored, "h0": (N, 2) if complex_ else (N,)}
    expected = named(lambda d: {**own, "weight_ih": (N, d, *stored["weight_ih"][2:])})
    assert {key: tuple(value.shape) for key, value in layer.state_dict().items()} == expected
    assert set(dict(layer.named_buffers())) == {key for key in expected if key.startswith("signs")}
    without = {key for key in layer.state_dict() if "bias" not in key}
    layer = getattr(it.nn, cls)(D, N, 2, bidirectional=True, trainable_h0=True, bias=False, **dict(keywords))
    assert set(layer.state_dict()) == without


def test_recurrent_parameters_are_those_of_the_transition():
    expected = {"ornn": ["vectors"], "unitary-ornn": ["vectors", "phases"], "scornn": ["upper"]}
    expected |= {"scurnn": ["upper", "diagonal", "phases"], "soft-ornn": ["u", "logits", "v"]}
    expected["kru"] = ["factors_0", "factors_1"]
    expected["scurnn"] = ["upper", "diagonal", "phases"]
    expected |= {"exprnn": ["upper"], "exprnn-complex": ["upper", "diagonal"], "full-capacity-urnn": ["weight"]}
    for name, names in expected.items():
        layer = build(name, 2, bidirectional=True, trainable_h0=True)
        found = list(layer.recurrent_parameters())
        wanted = [getattr(layer, k + end) for end in ("_l0", "_l0_reverse", "_l1", "_l1_reverse") for k in names]
        assert len(found) == len(wanted)
        assert all(a is b for a, b in zip(found, wanted, strict=True))


@each_layer
def test_initial_values(name):
    """Input weights within sqrt(6 / (n + d)), biases and initial states zero, W orthogonal or unitary."""
    layer = LAYERS[name](D, N, 2, trainable_h0=True)
    for key, p in layer.named_parameters():
        if key.startswith("weight_ih"):
            bound = (6 / (N + p.shape[1])) ** 0.5
            assert 0.5 * bound < p.abs().max() <= bound
        elif "bias" in key or key.startswith("h0"):
            assert not p.any()
        else:
            assert p.abs().sum() > 0 or key.startswith(("diagonal", "logits"))


def test_initial_vectors_of_the_ornn():
    """oRNN with m = n: unit columns below a zero triangle, u_1 = +1."""
    u = it.nn.ORNN(D, N, dtype=torch.float64).vectors_l0.detach()
    assert u[-1, -1] == 1
    assert not torch.triu(u, 1).any()
    close(torch.linalg.vector_norm(u, dim=0), torch.ones(N, dtype=torch.float64), "column norms")


def test_a_free_matrix_starts_unitary_and_its_optimiser_keeps_it_so():
    """Every W of the full-capacity uRNN, trained while Adam has the other parameters."""
    layer = it.nn.FullCapacityURNN(D, N, 2, bidirectional=True)
    matrices = lambda: [layer.recurrent_matrix(k, way).detach() for k in (0, 1) for way in (False, True)]
    start, own = matrices(), list(layer.recurrent_parameters())
    rest = [p for p in layer.parameters() if not any(p is q for q in own)]
    optimizers = [it.optim.CayleyRMSprop(own, lr=1e-2), torch.optim.Adam(rest, lr=1e-2)]
    for step in range(50):
        layer.zero_grad()
        layer(draw(T, B, D, seed=step, dtype=torch.float32))[0].abs().square().sum().backward()
        for optimizer in optimizers:
            optimizer.step()
    for w, before in zip(matrices(), start, strict=True):
        assert it.orthogonality_error(before) < tolerance.UNITARITY
        assert it.orthogonality_error(w) < tolerance.UNITARITY
        assert (w - before).abs().max() > 0.1


@each_layer
def test_a_layer_or_direction_that_is_not_there(name):
    layer = build(name, 2)
    for k in (2, -1):
        with pytest.raises(IndexError, match="layer"):
            layer.recurrent_matrix(layer=k)
    with pytest.raises(ValueError, match="bidirectional"):
        layer.recurrent_matrix(reverse=True)


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


def test_refusals():
    for cls, keywords, error, words in (
        (it.nn.ORNN, {"reflections": 2.0}, TypeError, "reflections"),
        (it.nn.UnitaryORNN, {"reflections": N}, ValueError, "reflections"),
        (it.nn.UnitaryORNN, {"nonlinearity": "modrelu_realrep"}, ValueError, "real"),
        (it.nn.ScoRNN, {"negative_ones": 0.5}, TypeError, "negative_ones"),
        (it.nn.ScuRNN, {"nonlinearity": "sine"}, ValueError, "nonlinearity"),
        (it.nn.SoftORNN, {"margin": 1.1}, ValueError, "margin"),
        (it.nn.SoftORNN, {"margin": None}, TypeError, "margin"),
        (it.nn.KRU, {"factor_sizes": (4, 2)}, ValueError, "factor_sizes"),
        (it.nn.KRU, {"complex": 1}, TypeError, "complex"),
        (it.nn.ScuRNN, {"dtype": torch.complex64}, TypeError, "dtype"),
        (it.nn.ScuRNN, {"dtype": torch.bfloat16}, TypeError, "float32 or float64, not bfloat16"),
        (it.nn.ScoRNN, {"dtype": torch.int32}, TypeError, "float16, bfloat16, float32 or float64"),
        (it.nn.ScoRNN, {"dtype": "float32"}, TypeError, "dtype must be a torch.dtype"),
        (it.nn.ScoRNN, {"slope": 0.2}, TypeError, "slope"),
        (it.nn.ScoRNN, {"output": "last"}, TypeError, "with last_only=True it returns the last states alone"),
        (it.nn.RUM, {"output": "states"}, TypeError, "output is no keyword of a layer"),
        (it.nn.ExpRNN, {"complex": 1}, TypeError, "complex must be a bool"),
        (it.nn.FullCapacityURNN, {"nonlinearity": "modrelu_realrep"}, ValueError, "real"),
    ):
        with pytest.raises(error, match=words):
            cls(D, N, **keywords)
    with pytest.raises(TypeError, match="hx must have the precision of the weights, torch.float64, not torch.float32"):
        build("scornn")(draw(T, B, D), torch.zeros(1, B, N, dtype=torch.float32))


def test_a_loaded_diagonal_is_the_layers_own():
    layer = it.nn.ScoRNN(D, N, negative_ones=1)
    layer.load_state_dict(it.nn.ScoRNN(D, N, negative_ones=4).state_dict())
    assert layer.negative_ones == 4
    layer.reset_parameters()
    assert (layer.signs_l0 < 0).sum() == 4


def test_representation():
    assert repr(it.nn.ORNN(D, N, 2, reflections=2, batch_first=True)) == (
        "ORNN(3, 6, num_layers=2, batch_first=True, reflections=2, sign='hard', nonlinearity='leaky_relu', slope=0.1)"
    )
    assert repr(it.nn.KRU(D, N)) == "KRU(3, 6, factor_sizes=(2, 3), complex=True, nonlinearity='modrelu')"
    assert repr(it.nn.SoftORNN(D, N)) == "SoftORNN(3, 6, margin=0.1, nonlinearity='tanh')"
    assert repr(it.nn.ScoRNN(D, N, trainable_h0=True)) == (
        "ScoRNN(3, 6, negative_ones=3, nonlinearity='oplu', trainable_h0=True)"
    )


EMPTY = [
    (it.nn.UnitaryORNN, 4, {"reflections": 0}),
    (it.nn.UnitaryORNN, 1, {}),
    (it.nn.ScoRNN, 1, {}),
    (it.nn.ScuRNN, 1, {}),
    (it.nn.ORNN, 1, {}),
    (it.nn.SoftORNN, 1, {}),
]


@pytest.mark.parametrize("cls,n,keywords", EMPTY)
def test_transitions_with_arrays_of_no_entries(cls, n, keywords):
    """They run, compiled too, and have gradients if there is anything to train; from NumPy as from torch."""
    layer, twin = (cls(D, n, dtype=torch.float64, **keywords) for _ in range(2))
    for key, p in twin.named_parameters():
        p.data = torch.from_numpy(getattr(layer, key).detach().numpy().copy())
    x = draw(T, B, D)
    torch.compiler.reset()
    fast = compiled(twin)
    outputs = [model(x)[0] for model in (layer, twin, fast)]
    for model, out in zip((layer, twin), outputs, strict=False):
        out.abs().square().sum().backward()
        assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())
    close(outputs[1], outputs[0])
    close(outputs[2], outputs[0], "compiled")
    for p, q in zip(layer.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


# ---------------------------------------------------------------- options


def test_modrelu_without_a_bias_has_bias_zero():
    for name in (*LAYERS, *(form for form in FORMS if form.startswith("goru"))):
        layer, plain = (formed(name, nonlinearity=kind, bias=False) for kind in ("modrelu", "identity"))
        plain.load_state_dict(layer.state_dict())
        x = draw(T, B, D)
        close(layer(x)[0], plain(x)[0], "modReLU with bias zero is the identity")


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


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_input(name):
    """A complex layer accepts complex input; real input is treated as complex with imaginary part zero."""
    layer, x = build(name, 2), draw(T, B, D)
    close(layer(x + 0j)[0], layer(x)[0])
    assert layer(torch.complex(x, draw(T, B, D, seed=1)))[0].dtype == torch.complex128
    with pytest.raises(ValueError, match="complex64"):
        layer(x.to(torch.complex64))
    with pytest.raises(ValueError, match="complex128"):
        build("scornn")(x + 0j)
    with pytest.raises(TypeError, match="hx must be real"):
        build("scornn")(x, draw(1, B, N) + 0j)
    for other in (torch.float32, torch.complex64):
        with pytest.raises(TypeError, match="float64|complex128"):
            layer(x, draw(2, B, N).to(other))


@each_kind
def test_autocast_computes_in_single_precision(name):
    """Half-precision inputs and states, as other modules return them under autocast, are widened first."""
    layer = build(name, 2, dtype=torch.float32)
    x, h0 = draw(T, B, D, dtype=torch.float32), states(layer, 2, B, dtype=torch.float32)
    half, half_h0 = x.bfloat16(), h0.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        out, last = layer(half, half_h0)
    expected, expected_last = layer(half.float(), half_h0.float())
    assert torch.equal(out, expected)
    assert torch.equal(last, expected_last)


def test_dropout_takes_whole_complex_units():
    layer = build("scurnn", 2, dropout=0.5, nonlinearity="identity", bias=False)
    seen = []
    layer._run, run = lambda sweep: seen.append(sweep.x) or run(sweep), layer._run
    layer(draw(T, B, D))
    gone = seen[1] == 0
    assert 0.2 < gone.double().mean() < 0.8
    assert (seen[1].real[~gone] != 0).all()
    assert (seen[1].imag[~gone] != 0).all()


# ---------------------------------------------------------------- training


@pytest.mark.parametrize("steps", [40, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("form", [*LAYERS, *(form for form, (kind, _) in FORMS.items() if kind == "goru")])
def test_orthogonality_survives_training(form, steps):
    """e(W) in float32 after steps of Adam."""
    kind, keywords = FORMS.get(form, (form, {}))
    layer = KINDS[kind](2, 8, **keywords)
    head = torch.nn.Linear(16 if layer.is_complex else 8, 1)
    start = layer.recurrent_matrix().detach()
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-2)
    for _ in range(steps):
        x = torch.rand(4, 4, 2)
        h = layer(x)[1][0]
        features = torch.cat([h.real, h.imag], -1) if h.is_complex() else h
        loss = torch.nn.functional.mse_loss(head(features), x[..., 0].sum(0)[:, None])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    w = layer.recurrent_matrix().detach()
    assert (w - start).abs().max() > (0.1 if steps > 40 else 0.02), "training moved W"
    assert form in SOFT or it.orthogonality_error(w) < tolerance.UNITARITY


def test_two_processes_train_as_one(tmp_path):
    """DistributedDataParallel on half a batch each gives both the parameters of the whole batch."""
    files = [tmp_path / f"{rank}.pt" for rank in range(2)]
    command = [sys.executable, distributed_work.__file__, str(tmp_path / "store")]
    runs = [subprocess.Popen([*command, str(r), str(f)]) for r, f in enumerate(files)]
    try:
        whole = distributed_work.trained()
        assert [run.wait(timeout=240) for run in runs] == [0, 0]
    finally:
        for run in runs:
            run.kill()
    first, second = (torch.load(f, weights_only=True) for f in files)
    for a, b, c in zip(first, second, whole, strict=True):
        for key in c:
            assert torch.equal(a[key], b[key]), key
            close(a[key], c[key], key)


@pytest.mark.parametrize("name", ["GRU", "RUM", "ScuRNN", "ScoRNN", "DeltaProduct"])
def test_the_warning_of_the_constructor_names_the_line_that_calls_it(name):
    """However many constructors of subclasses lie between."""
    with pytest.warns(UserWarning, match="dropout option") as caught:
        getattr(it.nn, name)(3, 4, dropout=0.5)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_names_what_torch_has_not(name):
    """What is kept of the states, and what is returned of them."""
    for keyword in ("``checkpoint``", "``last_only``"):
        assert keyword in getattr(it.nn, name).__doc__
