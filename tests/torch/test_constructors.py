"""Constructors of layers as `help` and `inspect.signature` show them: every keyword, and nothing else."""

import inspect
import pydoc

import pytest

import isometry.torch as it
from layers import NAMES, D, N

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
    kind = getattr(it.nn, name)
    shown = inspect.signature(kind).parameters.values()
    assert [p.name for p in shown if p.default is p.empty] == ["input_size", "hidden_size"]
    assert not any(p.kind is p.VAR_KEYWORD for p in shown)
    assert set(SHOWN) <= set(keywords(kind))
    assert "output" not in keywords(kind)
    assert ("heads" in keywords(kind)) == (kind._divisible or name == "DeltaProduct")
    head, _, _ = pydoc.render_doc(kind, renderer=pydoc.plaintext).partition(kind.__doc__.splitlines()[0])
    assert all(f" {key}: " in head for key in SHOWN)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_is_taken(name):
    """With the default that is shown, and with another value where all layers have it."""
    kind = getattr(it.nn, name)
    assert repr(kind(D, N, **keywords(kind))) == repr(kind(D, N))
    layer = kind(D, N, num_layers=2, batch_first=True, bidirectional=True, dropout=0.5)
    assert (layer.num_layers, layer.batch_first, layer.bidirectional, layer.dropout) == (2, True, True, 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_a_typo_names_the_class_and_the_nearest_keyword(name):
    kind = getattr(it.nn, name)
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
    class Sized(it.nn.ORNN):
        def __init__(self, size, **options):
            super().__init__(size, size, **options)

    class Inherited(it.nn.GRU):
        pass

    assert str(inspect.signature(Sized)) == "(size, **options)"
    assert inspect.signature(Inherited) == inspect.signature(it.nn.GRU)
    assert Inherited.__init__.__qualname__.endswith("Inherited.__init__")
