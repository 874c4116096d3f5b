"""Weights after every way of a module to another precision, and after averages: orthogonal in the precision of use."""

import copy
import itertools

import pytest
import torch
from torch.nn.utils import parametrize
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import isometry.torch as it
from elsewhere import Elsewhere
from layers import FREE, LAYERS, SOFT, build
from orthogonal_weights import EVERY, MAPS, Holder, gap, original
from tolerance import close

HALF = (torch.float16, torch.bfloat16)
# shape, dtype, use_trivialization; on both sides of 8 rows, where the nearest matrix is found in another way
CASES = (
    *(((n, n), torch.float32, True) for n in (1, 8, 40)),
    ((2, 1, 9, 9), torch.complex64, True),
    ((3, 2, 2), torch.complex64, False),
    ((9, 9), torch.float32, False),
    ((4, 9), torch.float32, True),
    ((9, 4), torch.complex64, True),
)
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)


def orthogonal(weight):
    """W of a function, to a few n eps of its precision."""
    with torch.no_grad():  # what was made in inference mode is not for training
        w = weight()
    eps = torch.finfo(w.dtype).eps
    assert gap(w) <= (8 * max(w.shape[-2:]) if w.dtype not in HALF else 8) * eps


# ---------------------------------------------------------------- the ways of a module, with what makes another like it


def raised(module, _):
    """To the next precision and, where there is one below, through that."""
    return module.to(torch.complex128 if any(p.is_complex() for p in module.parameters()) else torch.float64)


def through(half):
    return lambda module, _: module if is_complex(module) else module.to(half).float()


def is_complex(module):
    return any(p.is_complex() for p in module.parameters())


def rounded(module):
    """The state with every number rounded to half precision, or with 7 bits."""
    return {key: _seven_bits(t) for key, t in module.state_dict().items()}


def _seven_bits(t):
    if t.is_complex():
        return torch.view_as_complex(torch.view_as_real(t).bfloat16().float())
    return t.bfloat16().float() if t.is_floating_point() else t


def loaded(module, twin, **keywords):
    other = twin()
    other.load_state_dict(rounded(module), **keywords)
    return other


def loaded_from_half(module, twin):
    other = twin()
    other.load_state_dict(rounded(module) if is_complex(module) else copy.deepcopy(module).bfloat16().state_dict())
    return other


def _with(module, state):
    module.load_state_dict(state)
    return module


def averaged(**keywords):
    def way(module, twin):
        average = AveragedModel(module, **keywords)
        for _ in range(2):
            average.update_parameters(twin())
        return copy.deepcopy(average).module

    return way


def by_collectives(module, twin):
    """In place, without a trace in torch's count of changes."""
    other = twin()
    for mine, theirs in zip(module.buffers(), other.buffers(), strict=True):
        if mine.is_floating_point() or mine.is_complex():
            mine.data.lerp_(theirs, 0.5)
    return module


def in_inference_mode(module, twin):
    with torch.inference_mode():
        return averaged(use_buffers=True)(module, twin)


WAYS = {
    "double": raised,
    "float16 and back": through(torch.float16),
    "bfloat16 and back": through(torch.bfloat16),
    "bfloat16, back and double": lambda module, twin: raised(through(torch.bfloat16)(module, twin), twin),
    "copied, then double": lambda module, twin: raised(copy.deepcopy(module), twin),
    "double and back": lambda module, twin: module if is_complex(module) else raised(module, twin).float(),
    "loaded": loaded,
    "loaded by assignment": lambda module, twin: loaded(module, twin, assign=True),
    "loaded from half precision": loaded_from_half,
    "loaded into double precision": lambda module, twin: _with(raised(twin(), None), rounded(module)),
    "averaged": averaged(use_buffers=True),
    "averaged parameters": averaged(use_buffers=False),
    "moving average": averaged(use_buffers=True, multi_avg_fn=get_ema_multi_avg_fn(0.5)),
    "averaged, then double": lambda module, twin: raised(averaged(use_buffers=True)(module, twin), twin),
    "collectives": by_collectives,
    "in inference mode": in_inference_mode,
}
ways = pytest.mark.parametrize("way", WAYS)


def weighted(shape, name, dtype, trivialization):
    module = it.parametrizations.orthogonal(
        Holder(torch.randn(shape, dtype=dtype)), "weight", name, use_trivialization=trivialization
    )
    with torch.no_grad():
        original(module).add_(0.3 * torch.randn(shape, dtype=dtype))
        module.weight
    return module


@ways
@EVERY
@pytest.mark.filterwarnings("ignore:Complex modules")
def test_weights(name, way):
    """Of any kind and shape, called before and after; their twins too."""
    for shape, dtype, trivialization in CASES:
        twin = lambda: weighted(shape, name, dtype, trivialization)
        module = WAYS[way](twin(), twin)
        orthogonal(lambda: module.weight)
        with parametrize.cached():
            orthogonal(lambda: module.weight)
        orthogonal(lambda: copy.deepcopy(module).weight)


@EVERY
@pytest.mark.parametrize("part", ["parameters", "buffers"])
def test_one_part_in_another_precision(part, name):
    """Of parameters and buffers alone, by `data`: W has the precision of the parameter."""
    for shape, dtype, trivialization in CASES:
        module = weighted(shape, name, dtype, trivialization)
        for t in getattr(module, part)():
            t.data = t.data.to(torch.complex128 if t.is_complex() else torch.float64)
        assert module.weight.dtype is original(module).dtype
        orthogonal(lambda: module.weight)
        module.weight.abs().sum().backward()
        assert original(module).grad.isfinite().all()


def later(name):
    """A layer, other than before, with the same buffers."""
    state = torch.random.get_rng_state()
    layer = build(name, 2, dtype=torch.float32)
    torch.random.set_rng_state(state)
    for p in layer.recurrent_parameters():
        p.data.add_(0.3 * torch.randn(p.shape))
    return layer


@pytest.mark.parametrize("name", [name for name in (*LAYERS, "rnn-transition") if name not in SOFT])
@pytest.mark.filterwarnings("ignore:Complex modules")
def test_layers(name):
    """W of every layer that keeps it orthogonal."""
    for convert in WAYS.values():
        layer = convert(later(name), lambda: later(name))
        for k in range(2):
            orthogonal(lambda: layer.recurrent_matrix(k))


@pytest.mark.parametrize("name", FREE)
def test_a_unitary_parameter(name):
    """Where the precision tells that it was rounded; a matrix that was not unitary stays as it was."""
    twin = lambda: FREE[name](3, 20, 2, bidirectional=True)
    for way in ("double", "float16 and back", "bfloat16, back and double", "loaded from half precision"):
        layer = WAYS[way](twin(), twin)
        for k in range(2):
            for reverse in (False, True):
                orthogonal(lambda: layer.recurrent_matrix(k, reverse))
    layer = twin()
    with torch.no_grad():
        layer.weight_l0.mul_(1.5)
    before, stored = layer.weight_l0.detach().clone(), layer.state_dict()
    assert torch.equal(twin().double().load_state_dict(stored) and layer.double().weight_l0, before.double())


@EVERY
@pytest.mark.filterwarnings("ignore:Complex modules")
def test_half_precision_is_rounded_once_whatever_the_base(name):
    """W of a module in half precision is the rounded W of the same numbers in single precision."""
    for half, shape in itertools.product(HALF, ((40, 40), (8, 8), (9, 4))):
        module = weighted(shape, name, torch.float32, True).to(half)
        orthogonal(lambda: module.weight)
        wide = module.parametrizations.weight[0](original(module).float())
        assert torch.equal(wide.to(half), module.weight)
        orthogonal(lambda: wide)


@EVERY
@TYPES
@pytest.mark.filterwarnings("ignore:Complex modules")
def test_states_hold_the_orthogonal_base(dtype, name):
    """So that torch's parametrisation computes the same weight from a state that went through half precision."""
    module = WAYS["loaded"](weighted((20, 20), name, dtype, True), lambda: weighted((20, 20), name, dtype, True))
    before = module.state_dict()["parametrizations.weight.0.base"].clone()
    orthogonal(lambda: before)
    module.load_state_dict(module.state_dict())
    assert torch.equal(module.parametrizations.weight[0].base, before)


# ---------------------------------------------------------------- in the modes of torch


class Applied(torch.nn.Module):
    """A model with an averaged weight."""

    def __init__(self, name, shape=(9, 9)):
        super().__init__()
        twin = lambda: weighted(shape, name, torch.float32, True)
        self.inner = WAYS["averaged"](twin(), twin)

    def forward(self, x):
        return x @ self.inner.weight


@pytest.mark.parametrize("name", ["cayley", *(pytest.param(n, marks=pytest.mark.long) for n in MAPS if n != "cayley")])
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.torch.jit:DeprecationWarning")
def test_in_graphs(name):
    """Of a base that nothing has corrected before: compiled, exported, traced."""
    model, x = Applied(name), torch.eye(9)
    found = [
        torch.compile(model, backend="aot_eager", fullgraph=True)(x),
        torch.export.export(model, (x,)).module()(x),
        torch.jit.trace(copy.deepcopy(model), (x,), check_trace=False)(x),
    ]
    for w in found:
        close(w.detach(), model(x).detach(), 1e-5)
        orthogonal(lambda: w)


@EVERY
def test_in_transforms(name):
    """Stacked modules, gradients, tangents."""
    models, x = [Applied(name) for _ in range(3)], torch.eye(9)
    state = torch.func.stack_module_state(models)
    run = lambda *state: torch.func.functional_call(models[0], state, (x,))
    orthogonal(lambda: torch.func.vmap(run)(*state))
    found = torch.func.vmap(torch.func.grad(lambda *state: run(*state).square().cos().sum()))(*state)
    for k, model in enumerate(models):
        model(x).square().cos().sum().backward()
        close(found["inner.parametrizations.weight.original"][k].detach(), original(model.inner).grad, 1e-4)
    one = dict(models[0].named_parameters())
    w, _ = torch.func.jvp(lambda one: torch.func.functional_call(models[0], one, (x,)), (one,), (one,))
    orthogonal(lambda: w)


@EVERY
@pytest.mark.parametrize("shape", [(9, 9), (9, 4)], ids=str)
def test_elsewhere(shape, name):
    """On a device without kernels the same weight; values are fetched once."""
    model = Applied(name, shape).inner
    here = model.weight.detach()
    with Elsewhere() as device:
        device.send(model)
        there = model.weight.detach()
        device.fetched.clear()
        again = model.weight.detach()
        assert not device.fetched
    close(there, here, 1e-5)
    assert torch.equal(there, again)


@EVERY
def test_a_member_that_is_not_finite(name):
    """Nor reach the others those that are singular, or far from orthogonal."""
    module = weighted((5, 9, 9), name, torch.float32, True)
    base = module.parametrizations.weight[0].base
    with torch.no_grad():
        base[0], base[1, 0, 0], base[2, 1] = base[0].bfloat16(), torch.nan, torch.inf
        base[3] *= torch.arange(9) % 2
    w = module.weight
    for k in (0, 3, 4):
        orthogonal(lambda: w[k])
    assert not w[1].isfinite().all() and not w[2].isfinite().all()


def test_a_base_that_is_trained():
    """The gradient of an averaged base is that of its nearest orthogonal matrix."""
    law = Applied("matrix_exp").inner.parametrizations.weight[0].double()
    base, x = law.base + 0.1, torch.zeros(9, 9, dtype=torch.float64)
    run = lambda b: torch.func.functional_call(law, {"base": b}, (x,))
    assert torch.autograd.gradcheck(run, base.clone().requires_grad_(), fast_mode=True)
