"""The layers, drawn for a test: D features in, N units, T steps of B sequences, in double precision."""

import functools

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

import isometry.torch as it
import tolerance
from isometry.torch.nn._base import RecurrentLayer
from isometry.torch.nn._cell import CellLayer
from isometry.torch.nn._pair import PairLayer

D, N, T, B = 3, 6, 5, 4
# The names of all layers; other modules are none, and functions are none.
NAMES = tuple(name for name in it.nn.__all__ if name[0].isupper() and name not in ("OperatorModule", "RealState"))


def joined(layer):
    """A layer whose pairs of states are one tensor, for what is tested of every layer; `test_pairs` has pairs."""
    hooks = "_one_state", "_parted", "_separate", "_starting_shapes", "_start"
    pairs = issubclass(layer, PairLayer)
    return type(layer.__name__, (layer,), {name: getattr(RecurrentLayer, name) for name in hooks}) if pairs else layer


LAYERS = {
    "ornn": it.nn.ORNN,
    "unitary-ornn": it.nn.UnitaryORNN,
    "scornn": it.nn.ScoRNN,
    "scurnn": it.nn.ScuRNN,
    "soft-ornn": it.nn.SoftORNN,
    "kru": it.nn.KRU,
    "eurnn": it.nn.EURNN,
    "exprnn": it.nn.ExpRNN,
    "exprnn-complex": functools.partial(it.nn.ExpRNN, complex=True),
    "urnn": it.nn.URNN,
}
# W is orthogonal or unitary for some parameters only
SOFT = ("soft-ornn", "kru")
# W is a parameter, unitary as long as its optimiser trains it
FREE = {"full-capacity-urnn": it.nn.FullCapacityURNN}
# W is free, or any operator
PLAIN = {"rnn": it.nn.RNN, "rnn-transition": functools.partial(it.nn.RNN, transition=it.Cayley.random)}
# of the other cells of the core
CELL_LAYERS = {layer._cell: layer for name in NAMES if issubclass(layer := getattr(it.nn, name), CellLayer)}
PAIRS = {name: layer for name, layer in CELL_LAYERS.items() if issubclass(layer, PairLayer)}
OF_CELLS = {name: joined(layer) for name, layer in CELL_LAYERS.items()}
globals().update({OF_CELLS[name].__name__: OF_CELLS[name] for name in PAIRS})  # where pickle looks for a class
# whose state is no vector
MATRIX = {"delta-product": functools.partial(it.nn.DeltaProduct, heads=2, householders=2)}
KINDS = {**LAYERS, **FREE, **PLAIN, **OF_CELLS, **MATRIX}
# Forms of layers of cells: a kind, and its keywords
FORMS = {
    **{name: (name, {}) for name in OF_CELLS},
    "gru-after": ("gru", {"reset": "after"}),
    **{f"goru-{name}": ("goru", {"transition": name}) for name in ("householder", "cayley", "exponential")},
    "rum-eta": ("rum", {"eta": 1.5, "nonlinearity": "tanh"}),
    "rum-memory": ("rum", {"lam": 1, "eta": 1.0}),
    "delta-product": ("delta-product", {}),
    "delta-product-one-reflection": ("delta-product", {"householders": 1, "heads": 1, "bias": False}),
    "delta-product-no-gate": ("delta-product", {"heads": 3, "householders": 3, "gate": False, "negative": False}),
}
# Layers with a block-diagonal W; four of them, where a test takes long, stand for all
_DIVISIBLE = {name: (name, {}) for name, layer in KINDS.items() if getattr(layer, "func", layer)._divisible}
_DIVISIBLE |= {form: FORMS[form] for form in ("gru-after", "goru-householder", "goru-cayley")}
_DIVISIBLE |= {"ornn-few": ("ornn", {"reflections": 2}), "ornn-soft": ("ornn", {"sign": "soft"})}
IN_BLOCKS = {f"{form}-heads": (name, {**own, "heads": 2}) for form, (name, own) in _DIVISIBLE.items()}
HEADED = {f"{name}-heads": IN_BLOCKS[f"{name}-heads"] for name in ("scornn", "gru", "lstm", "goru")}
# torch's layers, and those of this package with the same parameters
AS_TORCH = {
    "rnn": (torch.nn.RNN, it.nn.RNN),
    "gru": (torch.nn.GRU, functools.partial(it.nn.GRU, reset="after")),
    "lstm": (torch.nn.LSTM, it.nn.LSTM),
}
COMPLEX = tuple(name for name, layer in KINDS.items() if layer(D, N).is_complex)
each_layer = pytest.mark.parametrize("name", LAYERS)
each_of_torch = pytest.mark.parametrize("name", AS_TORCH)
each_kind = pytest.mark.parametrize("name", KINDS)
# but for the one whose steps have a memory beside the state
EVERY = [form for form in dict.fromkeys((*KINDS, *FORMS, *IN_BLOCKS)) if form != "rum-memory"]
every_form = pytest.mark.parametrize("form", EVERY)


def each_form(kind):
    return pytest.mark.parametrize("form", [form for form, (name, _) in FORMS.items() if name == kind])


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def build(name, *args, seed=0, **keywords):
    torch.manual_seed(seed)
    layer = KINDS[name](D, N, *args, **{"dtype": torch.float64, **keywords})
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return layer


def twins(name, *sizes, seed=0, **keywords):
    """torch's layer, and that of this package with its weights."""
    theirs, ours = AS_TORCH[name]
    torch.manual_seed(seed)
    keywords = {"dtype": torch.float64, **keywords}
    pair = theirs(*(sizes or (D, N)), **keywords), ours(*(sizes or (D, N)), **keywords)
    pair[1].load_state_dict(pair[0].state_dict())
    return pair


def zeros(layer, *lead, seed=None):
    """States of torch's layer with these axes before the units: zero, or drawn by a seed; a pair for an LSTM."""
    one = lambda k: (
        draw(*lead, layer.hidden_size, seed=seed + k) if seed is not None else draw(*lead, layer.hidden_size) * 0
    )
    return (one(0), one(1)) if isinstance(layer, torch.nn.LSTM) else one(0)


def formed(form, *args, **keywords):
    kind, own = {**FORMS, **IN_BLOCKS}.get(form, (form, {}))
    return build(kind, *args, **{**own, **keywords})


def whole(form, *args, **keywords):
    """The same, whose states are pairs where the layer's are."""
    kind, own = {**FORMS, **IN_BLOCKS}.get(form, (form, {}))
    return {**KINDS, **CELL_LAYERS}[kind](D, N, *args, **{"dtype": torch.float64, **own, **keywords})


def states(layer, *lead, **keywords):
    """States of sequences, or initial ones."""
    return draw(*lead, *layer._state, **keywords)


def initial(layer, batch):
    """The states that a call begins with where it is given none, of every layer and direction."""
    own = [layer._start(suffix) for suffix in layer._suffixes]
    zero = torch.zeros(layer._state, dtype=torch.complex128 if layer.is_complex else torch.float64)
    return torch.stack([(zero if h is None else h).expand(batch, *layer._state) for h in own])


def stepped(layer, x, state=None):
    """The state after a step, which a layer whose state is no vector returns beside the output."""
    found = layer.step(x, state)
    return found[1] if len(layer._state) > 1 else found


def close(value, reference, what="value"):
    tolerance.close(value.detach(), reference.detach(), tolerance.sequence("float64", N, T), what)


def named(shapes, way=("", "_reverse")):
    """Names and shapes in the state dict of two layers; those of one way are shapes(number of features)."""
    each = {0: shapes(D), 1: shapes(2 * N)}
    return {f"{key}_l{k}{end}": shape for k in each for end in way for key, shape in each[k].items()}


def steps(step, y, h):
    """The states h = step(h, x) for every x of y, and the last one."""
    found = [h := step(h, x) for x in y]
    return torch.stack(found), h


def is_the_textbook_loop(layer, h0, run):
    """Two layers, two directions, packed: every sequence alone, from run(suffix, y, h) -> (outputs, the last state)."""
    sequences = [draw(k, D, seed=k) for k in (2, 5, 1)]
    packed, last = layer(pack_sequence(sequences, enforce_sorted=False), h0)
    out, _ = pad_packed_sequence(packed)
    for q, y in enumerate(sequences):
        for k in range(2):
            ways = []
            for r, suffix in enumerate((f"_l{k}", f"_l{k}_reverse")):
                found, h = run(suffix, y.flip(0) if r else y, h0[2 * k + r, q])
                close(last[2 * k + r, q], h, "h_n")
                ways.append(found.flip(0) if r else found)
            y = torch.cat(ways, -1)
        close(out[: len(y), q], y, f"sequence {q}")
