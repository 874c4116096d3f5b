"""States of `parametrizations.orthogonal`: weight decay, saving and loading, torch's checkpoints, copies."""

import copy
import subprocess
import sys

import pytest
import torch
from torch.nn.utils import parameters_to_vector, parametrize, vector_to_parameters
from torch.nn.utils.parametrizations import orthogonal as torchs
from torch.utils.checkpoint import checkpoint

import divided_work
import isometry.torch as it
from derivatives import compiled
from orthogonal_weights import EVERY, MAPS, TIGHT, Holder, gap, linear, original
from tolerance import close

WAYS = pytest.mark.parametrize("trivialization", [True, False], ids=["trivialized", "plain"])


#: Name -> an optimiser that moves the diagonal of X, which has no gradient, far.
MOVERS = {
    "Adam": lambda p: torch.optim.Adam(p, lr=0.02, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=5),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.02, weight_decay=5),
}
if hasattr(torch.optim, "Muon"):  # from torch 2.9 on
    MOVERS |= {f"Muon {lr}": lambda p, lr=lr: torch.optim.Muon(p, lr=lr) for lr in (0.02, 0.1)}


def moved(module, optimiser, target, scale, graph=lambda module: module):
    """The largest step of a column of W in training, beside how far the optimiser moved the diagonal of X."""
    run, axis = graph(module), 0 if target.shape[0] >= target.shape[1] else 1
    diagonal = lambda: original(module).detach().diagonal().real.clone()
    largest, far, w = 0.0, 0.0, module.weight.detach()
    eye = torch.eye(target.shape[1], dtype=target.dtype)
    for _ in range(100):
        optimiser.zero_grad()
        (run(eye).mT - target).abs().square().sum().mul(scale).backward()
        before, before_step = w, diagonal()
        optimiser.step()
        far, w = far + (diagonal() - before_step).abs(), module.weight.detach()
        largest = max(largest, (w - before).norm(dim=axis).max().item())
    return largest, far.max().item()


@WAYS
@pytest.mark.parametrize("shape", [(5, 5), (9, 4), (4, 9)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("mover", MOVERS)
def test_signs_survive_any_optimiser(mover, dtype, shape, trivialization):
    """W turns continuously where an optimiser moves the diagonal through zero, and is what is saved, for torch too."""
    dtype = torch.float64 if mover.startswith("Muon") else dtype  # which has no complex arithmetic
    build = lambda make=it.parametrizations.orthogonal: make(
        linear(*shape, dtype=dtype), "weight", "householder", use_trivialization=trivialization
    )
    module, target = build(), torch.randn(shape, dtype=dtype)
    largest, far = moved(module, MOVERS[mover](module.parameters()), target, 1e-3 if mover == "Adam" else 1)
    assert far > 0.3, "the test reaches what it is about"
    assert largest < 1  # a column that turns around moves by 2
    w = module.weight.detach()
    for make in [it.parametrizations.orthogonal] + ([] if dtype.is_complex or shape[0] != shape[1] else [torchs]):
        other = build(make)
        other.load_state_dict(module.state_dict())
        close(other.weight.detach(), w, TIGHT)


@pytest.mark.parametrize("shape", [(5, 5), (9, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_signs_survive_in_a_compiled_module(dtype, shape):
    """Called twice before a gradient, and by a module that computes its activations again."""
    module = it.parametrizations.orthogonal(linear(*shape, dtype=dtype), orthogonal_map="householder")
    graph = lambda module: compiled(lambda x: (checkpoint(module, x, use_reentrant=False) + module(2 * x)) / 3)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.02, weight_decay=0.1)
    largest, far = moved(module, optimiser, torch.randn(shape, dtype=dtype), 1e-3, graph)
    assert far > 0.3 and largest < 1


COPIES = {
    "copy_": lambda target, source: [t.copy_(s) for t, s in zip(target.parameters(), source.parameters(), strict=True)],
    "vector": lambda target, source: vector_to_parameters(
        parameters_to_vector(source.parameters()), target.parameters()
    ),
    "state": lambda target, source: target.load_state_dict(source.state_dict()),
    "state kept": lambda target, source: target.load_state_dict(copy.deepcopy(source.state_dict())),
}


@torch.no_grad()
@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128, torch.bfloat16], ids=str)
def test_w_is_a_function_of_its_parameter(dtype, way):
    """Whatever was assigned or loaded before: signs are those of the diagonal, however small it has become."""
    for first in (1.0, 0.3, -0.3):
        source, target = (
            it.parametrizations.orthogonal(linear(6, 6, dtype=dtype), "weight", "householder", use_trivialization=False)
            for _ in range(2)
        )
        original(source).diagonal().mul_(first)
        expected = source.weight.clone()
        for scale in (1.0, 0.2, 0.6, 1e-30, 1e-300):
            for module in (source, target):
                original(module).diagonal().real.mul_(scale)
            assert torch.equal(source.weight, expected)
            COPIES[way](target, source)
            assert torch.equal(target.weight, expected)


@EVERY
def test_parameters_that_decay_to_zero(name):
    """Nothing ends in an error when weight decay alone acts, for as long as numbers last."""
    module = it.parametrizations.orthogonal(linear(6, 3, dtype=torch.float32), orthogonal_map=name)
    with torch.no_grad():
        original(module).add_(torch.randn(6, 3))
    optimiser = torch.optim.SGD(module.parameters(), lr=1.0, weight_decay=0.9)
    for _ in range(120):
        optimiser.zero_grad()
        (0 * module.weight).sum().backward()
        optimiser.step()
    assert not original(module).tril(-1).any() and gap(module.weight) < 1e-6
    close(module.weight.detach(), module.parametrizations.weight[0](-torch.eye(6, 3)).detach(), 1e-6)


@EVERY
@WAYS
@pytest.mark.parametrize("shape", [(6, 6), (7, 3), (3, 7), (2, 5, 3)], ids=str)
def test_torchs_states_load_and_go_on_as_there(shape, trivialization, name):
    """The same weight, and the same weights in every further step of gradient descent, although the base of a thin
    weight is another, of the size of the weight."""
    theirs, ours = (
        build(Holder(torch.randn(shape, dtype=torch.float64)), orthogonal_map=name, use_trivialization=trivialization)
        for build in (torchs, it.parametrizations.orthogonal)
    )
    target = torch.randn(shape, dtype=torch.float64)
    for _ in range(2):
        ours.load_state_dict(theirs.state_dict())
        optimisers = [torch.optim.SGD(m.parameters(), lr=0.05) for m in (theirs, ours)]
        for _ in range(3):
            close(ours.weight.detach(), theirs.weight.detach(), TIGHT)
            for module, optimiser in zip((theirs, ours), optimisers, strict=True):
                optimiser.zero_grad()
                (module.weight - target).square().sum().backward()
                optimiser.step()
    for held in (ours.state_dict().values(), [*ours.parameters(), *ours.buffers()]):
        assert sum(t.numel() for t in held) <= 2 * target.numel()


@EVERY
def test_copies_caches_and_several_weights(name):
    layer = torch.nn.RNN(3, 6, num_layers=2, bidirectional=True)
    for weight in ("weight_hh_l0", "weight_hh_l1_reverse", "weight_ih_l0"):
        it.parametrizations.orthogonal(layer, weight, name)
        assert gap(getattr(layer, weight)) < 1e-5
    twin = copy.deepcopy(layer)
    twin.load_state_dict(layer.state_dict())
    x = torch.randn(4, 2, 3)
    assert torch.equal(layer(x)[0], twin(x)[0])
    with parametrize.cached():
        assert layer.weight_hh_l0 is layer.weight_hh_l0
    with torch.no_grad():
        twin.parametrizations.weight_hh_l0.original.add_(torch.randn(6, 6).tril(-1))
    assert not torch.equal(layer.weight_hh_l0, twin.weight_hh_l0)


def test_behind_another_parametrization():
    """The law is one of a chain; a state of the chain loads into another, and has the signs of reflections."""
    for name, based, shape in (*((name, True, (5, 3)) for name in MAPS), ("householder", False, (6, 6))):
        first, second = linear(*shape), linear(*shape)
        for module in (first, second):
            parametrize.register_parametrization(module, "weight", Twice())
            it.parametrizations.orthogonal(module, "weight", name, use_trivialization=based)
        if not based:
            first.weight = torch.linalg.qr(torch.randn(shape, dtype=torch.float64))[0]
        with torch.no_grad():
            original(first).add_(torch.randn(shape).tril(-1))
        second.load_state_dict(first.state_dict())
        assert gap(first.weight) < 1e-12 and torch.equal(first.weight, second.weight)


def test_a_state_of_another_shape():
    module, other = (it.parametrizations.orthogonal(linear(n, 3), orthogonal_map="householder") for n in (5, 6))
    with pytest.raises(RuntimeError, match="size mismatch"):
        module.load_state_dict(other.state_dict(), False)


# ---------------------------------------------------------------- the weight as a function of the parameters


class Twice(torch.nn.Module):
    """A parametrisation before the orthogonal one."""

    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


@EVERY
@WAYS
@pytest.mark.parametrize("shape", [(0, 0), (5, 0), (0, 5)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_weights_without_columns(name, trivialization, shape, dtype):
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.empty(shape, dtype=dtype))
    it.parametrizations.orthogonal(module, "weight", name, use_trivialization=trivialization)
    assert module.weight.shape == shape
    module.weight.abs().sum().backward()
    assert original(module).grad.shape == shape


@pytest.mark.slow
def test_states_of_divided_weights(tmp_path):
    """fully_shard: saved and loaded as those of whole weights."""
    command = [sys.executable, divided_work.__file__, str(tmp_path / "store")]
    runs = [subprocess.Popen([*command, str(rank)]) for rank in range(divided_work.PROCESSES)]
    try:
        assert [run.wait(timeout=240) for run in runs] == [0] * divided_work.PROCESSES
    finally:
        for run in runs:
            run.kill()


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)], ids=str)
@EVERY
def test_a_module_without_memory_gets_it_from_a_state(name, shape):
    with torch.device("meta"):
        module = it.parametrizations.orthogonal(linear(*shape), orthogonal_map=name)
    other = it.parametrizations.orthogonal(linear(*shape), orthogonal_map=name)
    assert module.weight.is_meta
    module.load_state_dict(other.state_dict(), assign=True)
    assert torch.equal(module.weight, other.weight)
