"""The layers, drawn for a test: D features in, N units, T steps of B sequences, in double precision."""

import functools

import pytest
import torch

import isometry.torch as it
import tolerance

D, N, T, B = 3, 6, 5, 4
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
# with gates
GATED = {"gru": it.nn.GRU, "goru": it.nn.GORU, "rum": it.nn.RUM}
KINDS = {**LAYERS, **FREE, **GATED}
COMPLEX = tuple(name for name, layer in KINDS.items() if layer(D, N).is_complex)
each_layer = pytest.mark.parametrize("name", LAYERS)
each_kind = pytest.mark.parametrize("name", KINDS)


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def build(name, *args, seed=0, **keywords):
    torch.manual_seed(seed)
    layer = KINDS[name](D, N, *args, **{"dtype": torch.float64, **keywords})
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return layer


def close(value, reference, what="value"):
    tolerance.close(value.detach(), reference.detach(), tolerance.sequence("float64", N, T), what)
