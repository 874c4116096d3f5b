"""Every entry point of a layer reads the weights that a call would use, whatever people have made of the layer."""

import copy
import itertools

import numpy as np
import pytest
import torch
from torch import nn

import isometry.torch as it
import tolerance
from layers import FORMS, KINDS, B, D, N, T, draw, formed, stepped
from support import modules

#: Every layer in each of its forms, and the modules of operators.
LAYERS = list(dict.fromkeys((*KINDS, *FORMS)))
OPERATORS = {
    "cayley": lambda: it.Cayley.random(N, dtype=torch.float64),
    "complex cayley": lambda: it.Cayley.random(N, dtype=torch.complex128),
    "householder": lambda: it.Householder.random(N, 2, dtype=torch.float64),
    "mesh": lambda: it.Mesh.random(N, layers=2, dtype=torch.float64),
    "kronecker": lambda: it.Kronecker.random(N, dtype=torch.float64),
    "product": lambda: it.Dense(draw(N, N)) @ it.Cayley.random(N, dtype=torch.float64).H,
    "columns": lambda: it.Householder.random(N, 3, dtype=torch.float64).columns(3),
}
#: What classes have besides `torch.nn.Module`: read below, or no reader of weights.
READ = {"forward", "step", "cached", "recurrent_matrix", "penalty", "all_weights", "operator", "matrix"}
OTHERS = {
    "set_recurrent_matrix",
    "recurrent_parameters",
    "reset_parameters",
    "flatten_parameters",
    "is_complex",
    "slope",
    "proj_size",
    "output_size",
}
each_module = pytest.mark.parametrize("name", [*LAYERS, *OPERATORS])


def made(name, layers=1):
    """A layer, or the module of an operator."""
    if name not in OPERATORS:
        return formed(name, layers)
    torch.manual_seed(0)
    module = it.nn.OperatorModule(OPERATORS[name]())
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return module


def places(module):
    """The path of a module inside and the name of each of its parameters."""
    return [(path, name) for path, m in module.named_modules() for name in m._parameters]


def again(module):
    """A copy; what a hook has computed has a graph, which torch does not copy."""
    for m in module.modules():
        for key, value in vars(m).items():
            if isinstance(value, torch.Tensor):
                setattr(m, key, value.detach())
    return copy.deepcopy(module)


@torch.no_grad()
def plain(module, twin):
    """The twin, without hooks and parametrizations, with the weights that a call of the module would use."""
    for path, m in list(twin.named_modules()):
        own = again(module.get_submodule(path))
        own.forward = lambda: None
        own()  # the hooks
        for name, t in (*m.named_parameters(recurse=False), *m.named_buffers(recurse=False)):
            t.copy_(getattr(own, name))
    return twin


def readers(module):
    """name -> function(module) of every entry point, and of those that are the last states of a call."""
    if isinstance(module, it.nn.OperatorModule):
        op = again(module).operator()
        rows = draw(2, op.shape[-1]).to(op.dtype)
        return {"call": lambda m: m(rows), "matrix": lambda m: m.matrix(), "operator": lambda m: m.operator()(rows)}, {}
    x = draw(3, 2, D).to(next(module.parameters()).dtype)
    read = {"call": lambda m: m(x)[0], "h_n": lambda m: m(x)[1]}
    read["all_weights"] = lambda m: torch.cat([w.flatten() for w in itertools.chain(*m.all_weights)])
    for method in {"recurrent_matrix", "penalty"} & set(dir(module)):
        read[method] = lambda m, method=method: getattr(m, method)()
    states = {
        "step": lambda m: chain(m, x),
        "cached call": lambda m: inside(m, lambda: m(x)[1]),
        "cached step": lambda m: inside(m, lambda: chain(m, x)),
        "a cached call after a step": lambda m: inside(m, lambda: (stepped(m, x[0]), m(x)[1])[1]),
    }
    return read, states


def chain(layer, x):
    """The state after some steps."""
    state = None
    for x_t in x:
        state = stepped(layer, x_t, state)
    return state[0] if isinstance(state, tuple) else state


def inside(layer, call):
    with layer.cached():
        return call()


def agree(module, twin, what):
    """All entry points of a module, each of a copy, with and without gradients in turns, are those of its twin."""
    twin, (read, states) = plain(module, twin), readers(module)
    with torch.no_grad():
        expected = {key: call(twin) for key, call in read.items()}
    for k, (key, call) in enumerate((read | states).items()):
        with torch.set_grad_enabled((k + len(what)) % 2 > 0):
            found = call(again(module)).detach()
        reference = expected[key if key in read else "h_n"]
        tolerance.close(found, reference, tolerance.sequence("float64", N, T), f"{what}: {key}")


def test_every_public_name_is_read_here():
    for kind in (getattr(it.nn, name) for name in it.nn.__all__):
        if isinstance(kind, type):
            public = {name for name in dir(kind) if not name.startswith("_")} - set(dir(nn.Module))
            assert public <= READ | OTHERS, kind


@each_module
@pytest.mark.parametrize("changes", [modules.COMPUTED, modules.PARAMETRISED], ids=["by hooks", "parametrised"])
def test_computed_weights(name, changes):
    """Any weight, of the module or of one inside it; between calls the attribute is that of other parameters."""
    rng, count = np.random.default_rng(0), 0
    for change, how in changes.items():
        own = places(made(name))
        for k in rng.permutation(len(own)):
            module, (path, weight) = made(name).eval(), own[k]
            owner = module.get_submodule(path)
            if owner.get_parameter(weight).dim() < 2 and change.endswith(("spectral-normed", "orthogonal")):
                continue
            try:
                how(owner, weight)
            except (ValueError, IndexError, RuntimeError):
                continue  # torch prunes no rows of vectors
            with torch.no_grad():
                for p in module.parameters():
                    p.mul_(1.25)
            agree(module.eval(), made(name), f"{change}, {path} {weight}")
            count += 1
            break
    assert count >= len(changes) - 2


@each_module
def test_what_is_done_to_modules(name):
    """One weight is pruned, the others are parameters."""
    for kind, change in modules.COPIES.items():
        module = made(name)
        path, weight = places(module)[0]
        nn.utils.prune.random_unstructured(module.get_submodule(path), weight, 0.5)
        agree(change(again(module)), made(name), f"pruned, {kind}")


@pytest.mark.parametrize("name", LAYERS)
def test_shared_parameters(name):
    """Of two layers of units, or of two recurrent layers; pruned in one of them."""
    layer, other, count = made(name, 2), made(name, 2), 0
    for path, weight in places(layer):
        second = weight.replace("_l0", "_l1") if not path else weight
        owner, inner = layer.get_submodule(path), path.replace("_l0", "_l1")
        twin = layer.get_submodule(inner)
        if (inner, second) != (path, weight) and owner.get_parameter(weight).shape == twin.get_parameter(second).shape:
            setattr(twin, second, owner.get_parameter(weight))
            count += 1
    for path, m in layer.named_modules():
        for weight in list(m._parameters):
            setattr(other.get_submodule(path), weight, m.get_parameter(weight))
    assert count
    agree(layer, made(name, 2), "two layers")
    path, weight = places(layer)[0]
    nn.utils.prune.random_unstructured(layer.get_submodule(path), weight, 0.5)
    agree(layer, made(name, 2), "pruned in one")
    agree(other, made(name, 2), "and not in the other")


@pytest.mark.parametrize("name", LAYERS)
def test_steps_are_trained_again_and_again(name):
    """Each with a graph of its own."""
    layer, x = made(name), draw(1, B, D)
    nn.utils.prune.l1_unstructured(layer, "weight_ih_l0", 0.5)
    for run in (lambda: layer.step(x[0]), lambda: inside(layer, lambda: layer.step(x[0])), lambda: layer(x)):
        for _ in range(2):
            layer.zero_grad()
            sum(t.abs().square().sum() for t in torch.utils._pytree.tree_leaves(run())).backward()
        assert layer.weight_ih_l0_orig.grad.any()


@pytest.mark.parametrize("name", LAYERS)
def test_hooks_see_every_step(name):
    """Of the layer or of all modules, before and after; what they return is used, inside `cached` too."""
    layer, x, seen = made(name), draw(B, D), []
    before = (lambda _, args: (args[0] + 1, *args[1:])), chain(layer, x[None] + 1)
    after = (lambda _, args, out: (out[0], out[1]) if seen.append(args) else None), chain(layer, x[None])
    everywhere = nn.modules.module
    for register, (change, expected) in (
        (layer.register_forward_pre_hook, before),
        (everywhere.register_module_forward_pre_hook, before),
        (layer.register_forward_hook, after),
        (everywhere.register_module_forward_hook, after),
    ):
        handle = register(lambda module, *args, change=change: change(module, *args) if module is layer else None)
        try:
            for call in (lambda: chain(layer, x[None]), lambda: inside(layer, lambda: chain(layer, x[None]))):
                with torch.no_grad():
                    tolerance.close(call(), expected.detach(), tolerance.sequence("float64", N, T))
        finally:
            handle.remove()
    assert len(seen) == 4


def test_a_forward_of_its_own_takes_steps():
    class Doubled(it.nn.ORNN):
        def forward(self, input, hx=None):
            output, last = super().forward(input, hx)
            return output, 2 * last

    layers = [Doubled(D, N), it.nn.ORNN(D, N)]
    layers[1].forward = lambda *args, own=layers[1].forward: (own(*args)[0], 2 * own(*args)[1])
    x = torch.randn(1, B, D)
    for layer in layers:
        with torch.no_grad(), layer.cached():
            assert torch.equal(layer.step(x[0]), layer(x)[1])


def needing(module, args):
    module.upper_l0 = module.whole * args[0].sum()


def test_hooks_that_need_an_input():
    """Refused by name where they compute weights; the others change none."""
    layer, x = made("scornn"), draw(1, B, D)
    w = layer.recurrent_matrix()
    handle = layer.register_forward_pre_hook(lambda _, args: (args[0] * 2, *args[1:]))
    assert torch.equal(layer.recurrent_matrix(), w)
    handle.remove()
    layer.register_parameter("whole", layer._parameters.pop("upper_l0"))
    layer.register_forward_pre_hook(needing)
    expected = layer(x)[1]
    with pytest.raises(RuntimeError, match="recurrent_matrix needs.* needing, a forward pre-hook .*upper_l0"):
        layer.recurrent_matrix()
    tolerance.close(layer.step(x[0]).detach(), expected.detach(), tolerance.sequence("float64", N, T))


@pytest.mark.parametrize("exchange", [True, False])
def test_weights_of_divided_parameters(exchange, monkeypatch):
    """fully_shard: steps are calls, which gather them; what else reads them refuses, or is named to it. Also without
    DLPack's exchange, as before torch 2.10."""
    from torch.distributed.fsdp import register_fsdp_forward_method  # takes seconds to import

    if not exchange:
        monkeypatch.setattr("isometry.torch._dispatch.function._DIRECT", False)
    with modules.Process():
        for name, read in (("scornn", "recurrent_matrix"), ("kru", "penalty"), ("cayley", "matrix")):
            module, twin = made(name), made(name)
            modules.sharded(module)
            with pytest.raises(RuntimeError, match="needs whole parameters, but fully_shard"):
                getattr(module, read)()
            if name == "scornn":
                x = draw(2, B, D)
                for run in (lambda layer: chain(layer, x), lambda layer: inside(layer, lambda: chain(layer, x))):
                    torch.testing.assert_close(run(module), run(twin))
            register_fsdp_forward_method(module, read)
            found, expected = getattr(module, read)(), getattr(twin, read)()
            torch.testing.assert_close(found, expected)
            for value in (found, expected):
                value.abs().square().sin().sum().backward()
            for p, q in zip(module.parameters(), twin.parameters(), strict=True):
                assert q.grad is None or torch.allclose(p.grad.full_tensor(), q.grad)


def test_weights_divided_with_the_model_around_them():
    """Its hooks gather them in its calls alone; in another precision the module is as before, an optimiser refuses."""
    with modules.Process():
        for name, read in (
            ("scornn", "recurrent_matrix"),
            ("kru", "penalty"),
            ("cayley", "matrix"),
            ("adapter", "weight"),
        ):
            module = it.adapters.HRA(nn.Linear(D, D), 2) if name == "adapter" else made(name)
            modules.sharded(nn.Sequential(module))
            with pytest.raises(
                RuntimeError, match=f"{read if read != 'matrix' else 'operator'} needs whole parameters"
            ):
                value = getattr(module, read)
                value() if callable(value) else value
        module = modules.sharded(it.nn.FullCapacityURNN(D, N)).double()
        assert module.weight_l0.dtype is torch.float64
        with pytest.raises(TypeError, match="a parameter must be whole, not a sharded DTensor"):
            it.optim.CayleySGD(module.recurrent_parameters(), lr=0.1)


@pytest.mark.parametrize("name", [name for name in LAYERS if list(made(name).recurrent_parameters())])
def test_the_parameters_of_w(name):
    """A weight that is computed is replaced by those of which it is made, of its own direction alone."""
    for change in (nn.utils.prune.identity, nn.utils.weight_norm, modules.halved, *modules.PARAMETRISED.values()):
        layer, alive = formed(name, 2, bidirectional=True), []
        expected = {id(p) for p in layer.recurrent_parameters()}
        for path, weight in places(layer):
            owner = layer.get_submodule(path)
            p, before = owner.get_parameter(weight), list(layer.parameters())
            alive += before  # no number of one that is gone is that of another
            if p.dim() > 1:
                change(owner, weight)
                made_of = {id(q) for q in layer.parameters()} - {id(q) for q in before}
                expected |= made_of if id(p) in expected else set()
        found = [id(p) for p in layer.recurrent_parameters()]
        assert len(found) == len(set(found))
        assert set(found) == expected & {id(p) for p in layer.parameters()}
        groups = it.nn.parameter_groups(layer, lr=1.0, recurrent_lr=2.0)
        torch.optim.SGD(groups)
        assert {id(p) for p in groups[-1]["params"]} == set(found)
