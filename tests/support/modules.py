"""Modules as people change them: hooked in every way that torch has, computed weights, additions, frozen, copied.

What torch offers is looked up, so that a kind of hook which a release adds reaches every test that draws from here.
"""

import copy
import inspect
import io
import itertools
import warnings
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune


def _registrations(kind):
    """name -> function(object) for every method of torch that registers a hook, with each of its flags on and off."""
    found = {}
    for name in dir(kind):
        if not name.lstrip("_").startswith("register_") or not name.endswith("hook"):
            continue
        method = getattr(kind, name)
        flags = [p.name for p in inspect.signature(method).parameters.values() if p.default is False]
        for chosen in itertools.product((False, True), repeat=len(flags)):
            keywords = dict(zip(flags, chosen, strict=True))
            on = [flag for flag, value in keywords.items() if value]

            def register(thing, method=method, keywords=keywords):
                method(thing, lambda *_, **__: None, **keywords)  # a new one: torch takes some functions once

            found[" ".join([name, *on])] = register
    return found


#: name -> function(module), and function(tensor).
HOOKS = _registrations(nn.Module)
TENSOR_HOOKS = _registrations(torch.Tensor)


def halved(module, name):
    """A user's own hook: the weight is half of a parameter."""
    p = module._parameters.pop(name)
    module.register_parameter(name + "_whole", p)
    module.register_forward_pre_hook(lambda module, _: setattr(module, name, 0.5 * getattr(module, name + "_whole")))
    setattr(module, name, 0.5 * p.detach())


#: name -> function(module, name of a weight): a forward pre-hook computes the weight.
COMPUTED = {
    "pruned at random": lambda module, name: prune.random_unstructured(module, name, 0.5),
    "pruned rows": lambda module, name: prune.ln_structured(module, name, 0.5, 1, 0),
    "pruned twice": lambda module, name: [prune.random_unstructured(module, name, 0.2) for _ in range(2)],
    "weight-normed": nn.utils.weight_norm,
    "spectral-normed": nn.utils.spectral_norm,
    "a hook of one's own": halved,
}


class Scaled(nn.Module):
    """Half of a tensor."""

    def forward(self, t):
        return t / 2


#: name -> function(module, name of a weight): a parametrization computes the weight.
PARAMETRISED = {
    "parametrised, weight-normed": parametrizations.weight_norm,
    "parametrised, spectral-normed": parametrizations.spectral_norm,
    "parametrised, orthogonal": parametrizations.orthogonal,
    "parametrised, scaled": lambda module, name: parametrize.register_parametrization(module, name, Scaled()),
}


def _on_weight(add, module, name):
    add(getattr(module, name))


#: name -> function(module, name of a weight): the module has something that its class does not give it.
ADDITIONS = {
    "parameter": lambda module, _: module.register_parameter("extra", nn.Parameter(torch.ones(2))),
    "buffer": lambda module, _: module.register_buffer("extra", torch.ones(2)),
    "buffer apart": lambda module, _: module.register_buffer("extra", torch.ones(2), persistent=False),
    "submodule": lambda module, _: module.add_module("extra", nn.Dropout()),
    "forward": lambda module, _: setattr(module, "forward", type(module).forward.__get__(module)),
    "compiled": lambda module, _: module.compile(backend="eager"),
    **{f"{name} of a weight": partial(_on_weight, add) for name, add in TENSOR_HOOKS.items()},
}


def pickled(module):
    """Saved whole, and loaded."""
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def strided(module):
    """With every second place of memory between its numbers, and matrices transposed."""
    for p in module.parameters():
        wide = torch.zeros(*reversed(p.shape), 2, dtype=p.dtype)[..., 0].permute(*reversed(range(p.dim())))
        p.data = wide.copy_(p.data)
    return module


def loaded(module):
    """Of another layout, its parameters those of a state that was assigned."""
    state = {name: value.clone() for name, value in strided(copy.deepcopy(module)).state_dict().items()}
    module.load_state_dict(state, assign=True)
    return module


#: name -> function(module in double precision) -> a module of the same kind.
COPIES = {
    "as made": lambda module: module,
    "deep-copied": copy.deepcopy,
    "pickled": pickled,
    "half and back": lambda module: module.bfloat16().double(),
    "moved": lambda module: module.float().to("cpu").double(),
    "strided": strided,
    "loaded": loaded,
    "frozen": lambda module: module.requires_grad_(False),
    "evaluated": lambda module: module.eval(),
}


def _tensor_by_tensor(module, state):
    """As accelerate's `load_checkpoint_and_dispatch` does."""
    module.to("meta")
    for key, t in state.items():
        owner, _, name = key.rpartition(".")
        owner = module.get_submodule(owner)
        own = owner._parameters if name in owner._parameters else owner._buffers
        own[name] = nn.Parameter(t.clone()) if own is owner._parameters else t.clone()


def _exchanged(module, state):
    """As torch will load states by default."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        module.load_state_dict(state)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


#: name -> function(module, state) that gives the module the values of the state.
LOADS = {
    "copied": lambda module, state: module.load_state_dict(state),
    "assigned": lambda module, state: module.to("meta").load_state_dict(state, assign=True),
    "tensor by tensor": _tensor_by_tensor,
    "exchanged": _exchanged,
    "copied in place": lambda module, state: [t.copy_(state[key]) for key, t in module.state_dict().items()],
}


class Process:
    """A process group of this process alone."""

    def __enter__(self):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    def __exit__(self, *_):
        dist.destroy_process_group()


def scripted(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(module)


def sharded(module):
    from torch.distributed.fsdp import fully_shard  # takes seconds to import

    return fully_shard(module)


#: name -> function(module) -> what calls the module that it was given, whatever is put in its place afterwards.
WRAPPERS = {
    "compiled": lambda module: torch.compile(module, backend="eager"),
    "distributed": nn.parallel.DistributedDataParallel,
    "sharded": sharded,
}
