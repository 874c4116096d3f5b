"""Hugging Face transformers' models with delta rules, computed by the kernels of `it.fla` on the CPU.

Models look up the functions of their rule in their modules at every call; `register` replaces these functions.
"""

import importlib.util
from collections.abc import Mapping
from functools import wraps
from importlib.metadata import version
from inspect import signature
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from isometry.torch import fla
from isometry.torch._dispatch.function import widened

from ._registration import Function, Registration, Swap, Swaps, known

__all__ = ["Registration", "register"]

#: The oldest version of transformers that is served.
OLDEST = "5.15"

_CONVOLUTION = "causal_conv1d_fn"
_RULES: dict[str, Function] = {
    "torch_chunk_gated_delta_rule": fla.chunk_gated_delta_rule,
    "torch_recurrent_gated_delta_rule": fla.fused_recurrent_gated_delta_rule,
    "chunk_kimi_delta_attention": fla.chunk_kda,
    "recurrent_kimi_delta_attention": fla.fused_recurrent_kda,
}
_CHUNK_GATED, _ONE_GATED, _CHUNK_KDA, _ONE_KDA = _RULES
_GATED, _KDA = (_CHUNK_GATED, _ONE_GATED, _CONVOLUTION), (_CHUNK_KDA, _ONE_KDA, _CONVOLUTION)
#: The models, and the functions that are replaced in their modules. A version of transformers may lack some models.
_MODELS = {
    "qwen3_next": _GATED,
    "qwen3_5": _GATED,
    "qwen3_5_moe": _GATED,
    "qwen4_exp": _GATED,
    "olmo_hybrid": _GATED,
    "kimi_linear": _KDA,
    "glm5_next": _KDA,
    "bailing_hybrid": _KDA,
}
#: What every rule takes, and its name in `it.fla`.
_GIVEN = {"query": "q", "key": "k", "value": "v", "g": "g", "beta": "beta"}
_STATES = ("initial_state", "output_final_state", "use_qk_l2norm_in_kernel", "kwargs")
#: The arguments by which the functions of a version that is served are known.
_SIGNATURES = {
    _CHUNK_GATED: (*_GIVEN, "chunk_size", *_STATES),
    _ONE_GATED: (*_GIVEN, *_STATES),
    _CHUNK_KDA: (*_GIVEN, "chunk_size", *_STATES),
    _ONE_KDA: (*_GIVEN, *_STATES),
    _CONVOLUTION: ("hidden_states", "weight", "bias", "activation", "kwargs"),
}


def register() -> Registration:
    """Make transformers' models with delta rules compute them by this package's kernels on the CPU.

    Served are Qwen3-Next, Qwen3.5 (dense and mixture of experts), Qwen4-exp, OLMo-Hybrid, Kimi-Linear, GLM5-Next and
    Bailing-Hybrid, as far as the installed version has them: models that exist and models made later, in forward and
    backward, in training, prefill and decoding, eager and inside `torch.compile`. Weights, caches and outputs stay
    what they were, up to rounding.

    Returns
    -------
    Registration
        Its `remove()` undoes the call, and so does the end of `with register(): ...`. Calls may be nested; the last
        registration that is removed restores transformers' functions.

    Raises
    ------
    ImportError
        transformers is not installed.
    RuntimeError
        A version of transformers whose functions are not known; the message names it.

    Notes
    -----
    Half precision is computed in float32, float64 in float64 (transformers: float32). Sequences packed into a batch of
    1 are kept apart where `cu_seq_lens_q` or `seq_idx` tells them, in the convolution before the rule too. Arguments of
    flash-linear-attention that `it.fla` does not compute are a NotImplementedError, further keywords of a model's call
    are dropped, as by transformers. Tensors on other devices, and `torch.export`, take transformers' own functions.
    Models whose code comes from the hub (`trust_remote_code`) are not served.

    Examples
    --------
    >>> from isometry.integrations.transformers import register
    >>> with register():  # doctest: +SKIP
    ...     model.generate(**inputs)
    """
    return _SWAPS.add()


def _find() -> list[Swap]:
    """All functions of all models."""
    return [Swap(module, name, _served(module, name)) for module, names in _modules() for name in names]


_SWAPS = Swaps(_find)


def _modules() -> list[tuple[ModuleType, tuple[str, ...]]]:
    """The modules of the models that the installed version has."""
    if importlib.util.find_spec("transformers") is None:
        raise ImportError("register() needs transformers, which is not installed: pip install transformers")
    found: list[tuple[ModuleType, tuple[str, ...]]] = []
    for model, names in _MODELS.items():
        path = f"transformers.models.{model}"
        if importlib.util.find_spec(path) is not None:
            found.append((importlib.import_module(f"{path}.modeling_{model}"), names))
    if not found:
        raise _unknown(f"it has none of the models {', '.join(_MODELS)}")
    return found


def _served(module: ModuleType, name: str) -> Function:
    """What replaces the function of a model."""
    original = known(module, name, _SIGNATURES[name], _unknown)
    if name != _CONVOLUTION:
        return _rule(original, name)
    if not hasattr(module, "ACT2FN"):
        raise _unknown(f"{module.__name__} has no ACT2FN")
    return _convolution(original, module.ACT2FN)


def _unknown(why: str) -> RuntimeError:
    served = f"isometry serves {OLDEST} and later versions with the same functions"
    return RuntimeError(f"transformers {version('transformers')} is not known: {why}; {served}")


def _ours(tensor: Tensor) -> bool:
    """Whether the kernels compute a call: on the CPU, and not for `torch.export`, whose programs need torch alone."""
    return tensor.device.type == "cpu" and not torch.compiler.is_exporting()


def _rule(original: Function, name: str) -> Function:
    """The function of transformers by the one of `it.fla`, which knows the arguments in `taken`."""
    rule, names = _RULES[name], _SIGNATURES[name][:-1]
    taken = set(signature(rule).parameters) - set(_GIVEN)

    @wraps(original, updated=())
    def computed(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        given = dict(zip(names, args, strict=False)) | kwargs
        query = given["query"]
        if not _ours(query):
            return original(*args, **kwargs)  # type: ignore[no-any-return]
        wide = torch.float64 if query.dtype is torch.float64 else torch.float32
        tensors = {own: given[name].to(wide) for name, own in _GIVEN.items()}
        more = {name: value for name, value in given.items() if name in taken}
        if more.get("initial_state") is not None:
            more["initial_state"] = more["initial_state"].to(wide)
        o, state = rule(**tensors, **more | {"cu_seqlens": _ends(given)})
        return o.to(query.dtype), state

    return computed


def _convolution(original: Function, activations: Mapping[str, Function]) -> Function:
    """The causal convolution; of packed sequences, with sums that stay within one."""

    @wraps(original, updated=())
    def computed(
        hidden_states: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None, **kwargs: Any
    ) -> Tensor:
        tokens = hidden_states.shape[-1]
        index = _index(tokens, kwargs) if _ours(hidden_states) else None
        if index is None:
            return original(hidden_states, weight, bias, activation, **kwargs)  # type: ignore[no-any-return]
        x, w = widened(hidden_states.to(weight.dtype)), widened(weight).flip(1).unsqueeze(-1)
        y = x * w[:, 0]
        for k in range(1, min(w.shape[1], tokens)):
            own = x[..., :-k].masked_fill(index[k:] != index[:-k], 0)  # a factor of 0 would let infinities pass
            y = y + pad(own * w[:, k], (k, 0))
        if bias is not None:
            y = y + widened(bias).unsqueeze(-1)
        return (y if activation is None else activations[activation](y)).to(hidden_states.dtype)

    return computed


def _ends(given: dict[str, Any]) -> Tensor | None:
    """Where the sequences of a packed batch start, and where the last one ends."""
    for name in ("cu_seqlens", "cu_seq_lens_q"):
        if given.get(name) is not None:
            return given[name]  # type: ignore[no-any-return]
    if (index := given.get("seq_idx")) is None:
        return None
    if index.shape[0] != 1:
        raise ValueError(f"seq_idx must have shape (1, T), not {tuple(index.shape)}: pack sequences into a batch of 1")
    starts = (index[0, 1:] != index[0, :-1]).nonzero().flatten() + 1
    return pad(pad(starts, (1, 0)), (0, 1), value=index.shape[1])


def _index(tokens: int, given: dict[str, Any]) -> Tensor | None:
    """The number of the sequence of every token; tokens of a cache stand before them and count for the first one."""
    index = given.get("seq_idx")
    if index is not None:
        return torch.cat([index[0, :1].expand(tokens - index.shape[1]), index[0]])
    ends = _ends(given)
    if ends is None:
        return None
    return torch.searchsorted(
        ends[1:-1].long(), torch.arange(tokens, device=ends.device) + ends[-1] - tokens, right=True
    )
