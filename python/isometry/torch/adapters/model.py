"""Adapters for the layers of a whole model: attach, detach, merge, and what is saved."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Literal

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..._rules import check
from ..nn._replacing import check_module, replace, unseen
from ._adapter import Adapter, kind_name
from ._frozen import all_or_nothing, freeze, restore
from .hra import HRA
from .oft import OFT

KINDS: dict[str, type[Any]] = {"OFT": OFT, "HRA": HRA}


def attach(
    model: nn.Module,
    kind: Literal["OFT", "HRA"],
    targets: str | Sequence[str] | Callable[[str, nn.Linear], bool],
    **options: Any,
) -> nn.Module:
    """Put an adapter around the named linear layers of a model, and freeze everything else.

    Prints how many layers were adapted, and how many parameters are trained.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place. Adapters that it has keep training.
    kind : {"OFT", "HRA"}
        The class of the adapters.
    targets : str, sequence of str, or callable
        Names of layers, whole as in ``named_modules()``, or their last parts: "q_proj" stands for
        "layers.0.attention.q_proj" and all its like. Or a function of name and layer that chooses.
    **options
        Keywords of the class, such as ``block_size`` or ``r``.

    Returns
    -------
    torch.nn.Module
        The model. Make an optimiser of the parameters that require a gradient. A layer in several places gets one
        adapter in all of them.

    Raises
    ------
    ValueError
        If a name is that of no linear layer (near names are listed), or one of them has an adapter already; if a call
        of the model would not reach the adapter, because the layer alone was compiled, is inside a wrapper that keeps
        its parameters, or is also held by another attribute; if a layer has no weight yet; and what the class raises.
        The model is then as before.
    TypeError
        If the model itself is a linear layer: ``OFT(layer)`` adapts that. And what the class raises, as for a weight in
        int8.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, 32)
    >>> model = it.adapters.attach(model, "OFT", ["linear1", "linear2"], block_size=4)
    attached OFT to 2 layers: 72 of 2,296 parameters are trained
    >>> sorted(it.adapters.adapter_state_dict(model))
    ['linear1.upper', 'linear2.upper']
    """
    check.choice("kind", kind, *KINDS)
    check_module("model", model)
    if isinstance(model, nn.Linear | Adapter):
        raise TypeError(f"model must contain the layers: {kind}(layer) adapts a single one")
    for name, p in model.named_parameters():
        if is_lazy(p):
            raise ValueError(f"model has a parameter without a value yet, {name!r}: call it once before")
    made: dict[nn.Module, Adapter] = {}
    trained = _trained(model)
    modules = [module for module in model.modules() if module not in trained]
    with all_or_nothing(modules):
        layers = dict(reversed([(layer, name) for name, layer in chosen(model, targets)]))
        for layer, why in unseen(model, layers).items():
            raise ValueError(f"targets: {layers[layer]!r} {why}")
        freeze(modules)
        for layer, name in layers.items():
            try:
                made[layer] = KINDS[kind](layer, **options).train(layer.training)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name}: {error}") from error
    replace(model, made)
    counts = [0, 0]
    own = {p for module in _trained(model) for p in module.parameters(recurse=False)}
    for p in model.parameters():
        p.requires_grad_(p in own)
        counts[p in own] += p.numel()
    print(f"attached {kind} to {len(made)} layers: {counts[1]:,} of {sum(counts):,} parameters are trained")
    return model


def detach(model: nn.Module) -> nn.Module:
    """Remove the adapters of a model, and restore its layers and their ``requires_grad``.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place; without adapters nothing happens.

    Returns
    -------
    torch.nn.Module
        The model.

    Raises
    ------
    ValueError
        If an adapter has hooks of its own, or a call of the model would not reach its layer; the model is then as
        before.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    >>> model = it.adapters.detach(it.adapters.attach(model, "HRA", "0", r=2))
    attached HRA to 1 layers: 16 of 52 parameters are trained
    >>> model
    Sequential(
      (0): Linear(in_features=8, out_features=4, bias=True)
    )
    """
    return _ended(model, lambda adapter: adapter.linear)


def merge(model: nn.Module) -> nn.Module:
    """Replace every adapter of a model by a plain linear layer that computes the same.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place; without adapters nothing happens.

    Returns
    -------
    torch.nn.Module
        The model, trained as before `attach`.

    Raises
    ------
    ValueError
        If an adapter or its layer has hooks of its own, or the layer a forward, tensors or submodules, which a plain
        layer would not have, or if a call of the model would not reach the merged layer; the model is then as before.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> model, x = torch.nn.Sequential(torch.nn.Linear(8, 4)), torch.randn(3, 8)
    >>> before = it.adapters.attach(model, "HRA", "0", r=2)(x)
    attached HRA to 1 layers: 16 of 52 parameters are trained
    >>> torch.allclose(it.adapters.merge(model)(x), before, atol=1e-6)
    True
    """
    return _ended(model, Adapter.merge)


def adapter_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """The entries of a model's state dict that belong to its adapters.

    ``load_state_dict(..., strict=False)`` of a model with the same adapters reads them.

    Parameters
    ----------
    model : torch.nn.Module
        A model with adapters.

    Returns
    -------
    dict of str to Tensor
        Under the names of the model's state dict.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    >>> model = it.adapters.attach(model, "HRA", "0", r=2)
    attached HRA to 1 layers: 16 of 52 parameters are trained
    >>> model.load_state_dict(it.adapters.adapter_state_dict(model), strict=False).unexpected_keys
    []
    """
    check_module("model", model)
    state, found = model.state_dict(), dict[str, Tensor]()
    for name, _ in adapters(model):
        start = f"{name}." if name else ""
        found |= {key: t for key, t in state.items() if key.startswith(start) and not key.startswith(start + "linear.")}
    return found


def adapters(model: nn.Module) -> Iterator[tuple[str, Adapter]]:
    """The adapters of a model, under every name that they have."""
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, Adapter):
            yield name, module


def _trained(model: nn.Module) -> set[nn.Module]:
    """The modules that hold the adapters' own parameters."""
    return {module for _, adapter in adapters(model) for module in adapter._own_modules.values()}


def chosen(
    model: nn.Module, targets: str | Sequence[str] | Callable[[str, nn.Linear], bool]
) -> Iterator[tuple[str, nn.Linear]]:
    """Names and layers, those inside adapters apart; a ValueError if a target has none."""
    adapted = {adapter.linear: name for name, adapter in adapters(model)}
    linear = [(name, m) for name, m in model.named_modules(remove_duplicate=False) if isinstance(m, nn.Linear)]
    free = [(name, layer) for name, layer in linear if layer not in adapted]
    if callable(targets) and not isinstance(targets, nn.Module):
        found = [(name, layer) for name, layer in free if targets(name, layer)]
        if not found:
            raise ValueError(f"targets chose none of the {len(free)} linear layers of the model")
        yield from found
        return
    if not isinstance(targets, Iterable):
        check.kind("targets", "names or a function", targets)
    words = [targets] if isinstance(targets, str) else list(targets)
    if not words:
        raise ValueError("targets must name at least one layer")
    for word in words:
        if not isinstance(word, str):
            check.kind("targets", "names or a function", word)
        at = [(name, layer) for name, layer in free if name == word or name.endswith("." + word)]
        if not at:
            raise ValueError(_nothing(model, word, [name for name, _ in free], list(adapted.values())))
        yield from at


def _nothing(model: nn.Module, word: str, free: Sequence[str], adapted: Sequence[str]) -> str:
    """The message for a target that is no free linear layer."""
    if any(name == word or name.endswith("." + word) for name in adapted):
        return f"targets: {word!r} has an adapter already"
    others = {kind_name(m) for name, m in model.named_modules() if name == word or name.endswith("." + word)}
    if others:
        return f"targets: {word!r} is {check.article(' or '.join(sorted(others)))}, not a torch.nn.Linear"
    last = sorted({name.rpartition(".")[2] for name in free})
    near = get_close_matches(word.rpartition(".")[2], last, 3, 0.4) or last[:5]
    return f"targets: no linear layer is called {word!r}; there is {', '.join(map(repr, near)) or 'none at all'}"


def _ended(model: nn.Module, instead: Callable[[Adapter], nn.Linear]) -> nn.Module:
    """The model with its adapters replaced, trained as before them."""
    check_module("model", model)
    if isinstance(model, Adapter):
        raise TypeError("model must contain the adapters: that of a single layer has linear and merge()")
    names = dict(reversed([(adapter, name) for name, adapter in adapters(model)]))
    for adapter, why in unseen(model, names).items():
        raise ValueError(f"model: {names[adapter]!r} {why}")
    by: dict[Adapter, nn.Linear] = {}
    for adapter, name in names.items():
        if (what := adapter._additions()) is not None:
            raise ValueError(f"{name} has hooks or other additions, which are the adapter's alone: remove {what}")
        try:
            by[adapter] = instead(adapter)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error
    modules = list(model.modules())
    replace(model, by)
    restore(modules)
    for adapter, layer in by.items():
        for name, p in layer.named_parameters(recurse=False):
            p.requires_grad_(adapter.linear.get_parameter(name).requires_grad)
    return model
