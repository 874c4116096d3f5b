"""Threads that use the same parameters: calls of this package in one, torch's operations in another."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

import isometry.torch as it
from faces import TorchFace, tensor
from laws.test_functions import ACTIVATE, SMOOTH
from layers import KINDS
from registry.functions import FUNCTIONS, Draw
from subprocesses import script

CALLS = """
    import faulthandler, os, sys, threading, time, traceback
    sys.path.insert(0, sys.argv[1])
    import torch, isometry.torch as it
    from layers import NAMES

    faulthandler.dump_traceback_later(60, exit=True)  # without the interpreter's lock
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = torch.randn(2, 2, 3), torch.randn(2, 3)
    layers = [getattr(it.nn, name)(3, 6) for name in NAMES]
    weights = [it.parametrizations.orthogonal(torch.nn.Linear(3, n)) for n in (2, 3)]
    modules = [*weights, it.adapters.HRA(torch.nn.Linear(3, 3), 2), it.nn.OperatorModule(it.Cayley.random(3))]
    a, q = torch.nn.Parameter(torch.randn(3, 3)), torch.nn.Parameter(torch.randn(1, 4, 2, 3))
    calls = [(m.parameters(), lambda m=m: m(x)) for m in (*layers, *modules)]
    calls += [([a], lambda f=f: f(a)) for f in (it.linalg.procrustes, it.linalg.geqrf)]
    calls += [([a], lambda: it.activate(a, "modrelu", bias=a.select(0, 0)))]
    calls += [([a], lambda: it.hadamard_transform(a.narrow(1, 0, 2)))]
    calls += [([q], lambda: it.delta_rule(q, q, q, torch.ones(1, 4, 2)))]
    calls += [([a], lambda: torch.func.vmap(lambda row: it.recurrence(it.Dense(a), x * row.sum(), a))(a))]
    used = [[p for p in parameters if p.requires_grad] for parameters, _ in calls]
    at, ended = 0, False

    def others():
        while not ended:
            for p in used[at]:
                p * 1

    def own():
        global at, ended
        try:
            for at, (_, call) in enumerate(calls):
                end = time.perf_counter() + float(sys.argv[2])
                while time.perf_counter() < end:
                    call()
            ended = True
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    for run in (others, own):
        threading.Thread(target=run, daemon=True).start()
    while not ended:
        time.sleep(0.01)
    os.write(1, str(len(calls)).encode())
    os._exit(0)
"""


@pytest.mark.slow
def test_calls_beside_operations_of_torch_end():
    """`Function.apply` waits for the mutex of a leaf while it holds the lock of the interpreter; an operation of torch
    holds the mutex and waits for the lock.
    """
    assert int(script(CALLS, Path(__file__).parents[1], 0.1)) > 25


#: Functions that may be called with leaves; a step of an optimiser is called without gradients.
OF_LEAVES = [*SMOOTH, *ACTIVATE, "Cayley.from_skew", "Exponential.from_skew", "linalg.cayley", "real_matrix"]
OF_LEAVES += ["real_state", "real_input", "complex_matrix", "complex_state"]
OF_LEAVES.remove("cayley_step")
WITH_THE_LOCK = {getattr(torch.Tensor, name).__get__ for name in ("T", "mT", "H", "mH", "real", "imag")}


class Watch(TorchFunctionMode):
    """Refuses an index or a property of a leaf, which torch reads without giving the interpreter's lock away."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in WITH_THE_LOCK or function is torch.Tensor.__getitem__:
            assert not (torch.is_grad_enabled() and args[0].is_leaf and args[0].requires_grad), function
        return function(*args, **(kwargs or {}))


def test_the_watch_sees_them():
    leaf = torch.nn.Parameter(torch.randn(2, 2))
    for call in (lambda: leaf[0], lambda: leaf.mT, lambda: leaf.imag):
        with pytest.raises(AssertionError), Watch():
            call()
    with Watch():
        leaf.transpose(0, 1).mT[0]


@pytest.mark.parametrize("kind", KINDS)
def test_layers_look_at_no_leaf_with_the_lock(kind):
    x = torch.randn(2, 2, 3, requires_grad=True)
    x = x.to(torch.complex64) if kind == "exprnn-complex" else x
    layer = KINDS[kind](3, 6, num_layers=2, bidirectional=True)
    with Watch():
        layer(x)
        layer(x.detach().requires_grad_())


def test_operators_look_at_no_leaf_with_the_lock(case, seed):
    given = {name: tensor(a).requires_grad_(name not in case.object.fixed) for name, a in case.draw(seed, 4).items()}
    with Watch():
        op = case.build(it, given, 4)
        module = it.nn.OperatorModule(op)
        for own in (op, op.H, op.columns(2), op @ op.H, module.operator()):
            own(torch.randn(3, own.shape[1], dtype=op.dtype, requires_grad=True))
            own.matrix()
        module(torch.randn(3, op.shape[1], dtype=op.dtype, requires_grad=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("way", ["matrix_exp", "cayley", "householder"])
def test_parametrised_weights_look_at_no_leaf_with_the_lock(way, dtype):
    for rows in (2, 3, 5):
        linear = torch.nn.Linear(3, rows, dtype=dtype)
        it.parametrizations.orthogonal(linear, orthogonal_map=way)
        with Watch():
            assert linear.weight.requires_grad


@pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("name", OF_LEAVES)
def test_functions_look_at_no_leaf_with_the_lock(name, dtype):
    entry, face = FUNCTIONS[name], TorchFace()
    given = entry.arguments(face, Draw(np.random.default_rng(0), np.float64 if entry.real else dtype))
    for key, t in given.items():
        if isinstance(t, torch.Tensor):
            t.requires_grad_(key not in entry.fixed)
    with Watch():
        entry.of(face, name)(**given)


def test_adapters_look_at_no_leaf_with_the_lock():
    x = torch.randn(1, 4, 2, 4, requires_grad=True)
    hra = it.adapters.HRA(torch.nn.Linear(4, 4), 2)
    oft = it.adapters.OFT(torch.nn.Linear(4, 4), 2)
    with Watch():
        hra(x), oft(x)
