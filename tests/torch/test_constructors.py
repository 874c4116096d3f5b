"""Constructors of layers: what `help` and `inspect.signature` show, what they refuse, what a layer shows of them."""

import inspect
import pydoc

import pytest
import torch

import isometry.torch as it
from layers import CELL_LAYERS, NAMES, D, N

nn = it.nn

SHOWN = (
    "bias",
    "batch_first",
    "dropout",
    "bidirectional",
    "trainable_h0",
    "checkpoint",
    "last_only",
    "device",
    "dtype",
)


def keywords(kind):
    return {p.name: p.default for p in inspect.signature(kind).parameters.values() if p.default is not p.empty}


@pytest.mark.parametrize("name", NAMES)
def test_every_keyword_is_shown(name):
    kind = getattr(nn, name)
    shown = inspect.signature(kind).parameters.values()
    assert [p.name for p in shown if p.default is p.empty] == ["input_size", "hidden_size"]
    assert not any(p.kind is p.VAR_KEYWORD for p in shown)
    assert set(SHOWN) <= set(keywords(kind))
    assert "output" not in keywords(kind)
    assert "``checkpoint``" in kind.__doc__ and "``last_only``" in kind.__doc__
    assert ("heads" in keywords(kind)) == (kind._divisible or name == "DeltaProduct")
    head, _, _ = pydoc.render_doc(kind, renderer=pydoc.plaintext).partition(kind.__doc__.splitlines()[0])
    assert all(f" {key}: " in head for key in SHOWN)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_is_taken(name):
    """With the default that is shown, and with another value where all layers have it."""
    kind = getattr(nn, name)
    assert repr(kind(D, N, **keywords(kind))) == repr(kind(D, N))
    layer = kind(D, N, num_layers=2, batch_first=True, bidirectional=True, dropout=0.5)
    assert (layer.num_layers, layer.batch_first, layer.bidirectional, layer.dropout) == (2, True, True, 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_a_typo_names_the_class_and_the_nearest_keyword(name):
    kind = getattr(nn, name)
    mine = type("Mine", (kind,), {})
    for made, shown in ((kind, name), (mine, "Mine")):
        for wrong, right in (
            ("num_layer", "num_layers"),
            ("batchfirst", "batch_first"),
            ("bidirectionnal", "bidirectional"),
        ):
            text = rf"^{shown}\.__init__\(\) got an unexpected keyword argument '{wrong}'\. Did you mean '{right}'\?$"
            with pytest.raises(TypeError, match=text):
                made(D, N, **{wrong: 1})


def test_a_class_of_ones_own_shows_its_own_constructor():
    class Sized(nn.ORNN):
        def __init__(self, size, **options):
            super().__init__(size, size, **options)

    class Inherited(nn.GRU):
        pass

    assert str(inspect.signature(Sized)) == "(size, **options)"
    assert inspect.signature(Inherited) == inspect.signature(nn.GRU)
    assert Inherited.__init__.__qualname__.endswith("Inherited.__init__")


@pytest.mark.parametrize(
    ("kind", "units", "keywords", "expected"),
    [
        (nn.ScoRNN, 6, {}, "oplu"),
        (nn.ScoRNN, 5, {}, "leaky_relu"),
        (nn.ScoRNN, 6, {"heads": 2}, "leaky_relu"),
        (nn.ExpRNN, 8, {"heads": 2}, "oplu"),
        (nn.ExpRNN, 6, {"complex": True}, "modrelu"),
        (nn.ScuRNN, 5, {}, "leaky_relu"),
        (nn.GORU, 5, {}, "modrelu"),
        (nn.RNN, 5, {}, "tanh"),
    ],
)
def test_the_activation_that_is_not_given(kind, units, keywords, expected):
    """Pairs of units lie in one head."""
    layer = kind(D, units, **keywords)
    assert layer.nonlinearity == expected
    same = kind(D, units, nonlinearity=expected, **keywords)
    same.load_state_dict(layer.state_dict())
    x = torch.randn(4, 2, D)
    assert torch.equal(same(x)[0], layer(x)[0])


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (
            nn.ORNN(D, N, 2, reflections=2, batch_first=True),
            "num_layers=2, batch_first=True, reflections=2, sign='hard', nonlinearity='leaky_relu', slope=0.1",
        ),
        (nn.KRU(D, N), "factor_sizes=(2, 3), complex=True, nonlinearity='modrelu'"),
        (nn.SoftORNN(D, N), "margin=0.1, nonlinearity='tanh'"),
        (nn.ScoRNN(D, N, trainable_h0=True), "negative_ones=3, nonlinearity='oplu', trainable_h0=True"),
        (
            nn.ScoRNN(D, N, checkpoint="sqrt", last_only=True),
            "negative_ones=3, nonlinearity='oplu', checkpoint='sqrt', last_only=True",
        ),
        (nn.GRU(D, N, 2, reset="after"), "num_layers=2, reset='after'"),
        (nn.LSTM(D, N, 2, checkpoint="sqrt"), "num_layers=2, checkpoint='sqrt'"),
        (nn.RUM(D, N, 2, eta=2.0), "num_layers=2, lam=0, eta=2.0, nonlinearity='relu'"),
        (
            nn.GORU(D, N, transition="cayley", reset="after"),
            "transition='cayley', reset='after', nonlinearity='modrelu', capacity=None",
        ),
    ],
)
def test_representation(layer, text):
    assert repr(layer) == f"{type(layer).__name__}(3, 6, {text})"


REVERSIBLE = {"checkpoint": "reversible"}
REFUSED = [
    (nn.UnitaryORNN, {"reflections": N}, ValueError, "reflections"),
    (nn.UnitaryORNN, {"nonlinearity": "modrelu_realrep"}, ValueError, "real"),
    (nn.SoftORNN, {"margin": 1.1}, ValueError, "margin"),
    (nn.KRU, {"factor_sizes": (4, 2)}, ValueError, "factor_sizes"),
    (nn.ScuRNN, {"dtype": torch.complex64}, TypeError, "dtype"),
    (nn.ScuRNN, {"dtype": torch.bfloat16}, TypeError, "float32 or float64, not bfloat16"),
    (nn.ScoRNN, {"dtype": torch.int32}, TypeError, "float16, bfloat16, float32 or float64"),
    (nn.ScoRNN, {"dtype": "float32"}, TypeError, "dtype must be a torch.dtype"),
    (nn.ScoRNN, {"slope": 0.2}, TypeError, "slope"),
    (nn.ScoRNN, {"output": "last"}, TypeError, "with last_only=True it returns the last states alone"),
    (nn.RUM, {"output": "states"}, TypeError, "output is no keyword of a layer"),
    (nn.FullCapacityURNN, {"nonlinearity": "modrelu_realrep"}, ValueError, "real"),
    (nn.EURNN, {"capacity": 0}, ValueError, "^capacity must be at least 1"),
    (nn.EURNN, {"layout": "cube"}, ValueError, "^layout must be 'brick' or 'fft'"),
    (
        nn.EURNN,
        {"layout": "fft", "capacity": 5, "hidden_size": 8},
        ValueError,
        r"^capacity must be log2.* = 3 .*, not 5",
    ),
    (nn.EURNN, {"layout": "fft"}, ValueError, "^hidden_size must be a power of two"),
    (nn.GORU, {"transition": "fourier"}, ValueError, "transition must be 'mesh' or .* not 'fourier'"),
    (nn.GORU, {"capacity": 0}, ValueError, "capacity must be"),
    (nn.GORU, {"transition": "cayley", "capacity": 5}, ValueError, "capacity must be None with .* 'cayley', .* not 5"),
    (nn.RUM, {"lam": 2}, ValueError, "lam must be 0"),
    (nn.RUM, {"eta": -1.0}, ValueError, "eta must be a positive number"),
    (nn.RUM, {"reflections": 2}, TypeError, "reflections"),
    (nn.LSTM, {"proj_size": 2}, TypeError, "proj_size"),
    (nn.RNN, {"transition": it.Cayley(torch.zeros(15))}, TypeError, "transition must be a function"),
    (nn.RNN, {"transition": lambda n: torch.eye(n)}, TypeError, r"transition\(n\) must be an operator"),
    (nn.RNN, {"transition": lambda n: it.Cayley.random(n + 1)}, ValueError, "hidden_size"),
    (nn.RNN, {"nonlinearity": "gelu"}, ValueError, "nonlinearity"),
    (nn.RUM, {"heads": 2}, TypeError, "heads must be 1 for RUM"),
    (nn.ScoRNN, {"heads": 4}, ValueError, "heads"),
    (nn.ScoRNN, {"heads": 0}, ValueError, "heads"),
    (nn.RNN, REVERSIBLE, ValueError, "reversible"),
    *((layer, REVERSIBLE, ValueError, "checkpoint=.reversible.*gates") for layer in CELL_LAYERS.values()),
    *(
        (kind, {**REVERSIBLE, "nonlinearity": "identity"}, ValueError, "reversible.*orthogonal")
        for kind in (nn.SoftORNN, nn.KRU)
    ),
    (nn.ORNN, {**REVERSIBLE, "sign": "soft", "nonlinearity": "oplu"}, ValueError, "reversible.*orthogonal"),
    (nn.ScoRNN, {**REVERSIBLE, "hidden_size": 5}, ValueError, "reversible.*nonlinearity"),
    (nn.RUM, {"lam": 1, "checkpoint": "sqrt"}, ValueError, "lam=1"),
    (nn.GRU, {"last_only": 1}, TypeError, "last_only"),
]
for layer in CELL_LAYERS.values():
    if "nonlinearity" in layer._own_keywords:
        REFUSED.append((layer, {"nonlinearity": "sine"}, ValueError, "nonlinearity must be one of"))
        REFUSED.append((layer, {"nonlinearity": "oplu", "hidden_size": 5}, ValueError, "hidden_size must"))
    else:
        REFUSED.append((layer, {"nonlinearity": "relu"}, TypeError, "nonlinearity"))
    if "reset" in layer._own_keywords:
        REFUSED.append((layer, {"reset": "never"}, ValueError, "reset must be 'before' or 'after', not 'never'"))


def test_what_is_refused():
    for kind, keywords, error, words in REFUSED:
        with pytest.raises(error, match=words):
            kind(**{"input_size": D, "hidden_size": N, **keywords})
