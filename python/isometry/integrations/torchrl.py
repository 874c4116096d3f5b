"""TorchRL's LSTMModule and GRUModule, computed by the recurrent layers of this package.

TorchRL's backend "pad" cuts a batch into its trajectories and pads them, "scan" steps in torch operations. Here a batch
is one call with marks, and a state for each of them.
"""

from collections.abc import Iterable
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from isometry.torch.nn._base import RecurrentLayer, dropped
from isometry.torch.nn._contract import Sweep

from ._registration import Function, Registration, Swap, Swaps, known
from ._steps import Steps
from ._views import view

__all__ = ["register"]

_RNN = "torchrl.modules.tensordict_module.rnn"
#: The modules, and the attribute that holds their layer.
_MODULES = {"LSTMModule": "lstm", "GRUModule": "gru"}


def register() -> Registration:
    """Make TorchRL's LSTMModule and GRUModule compute by this package's kernels on the CPU.

    Modules that exist and modules made later, step by step in a collector and over whole trajectories in a loss, with
    every ``recurrent_backend``. The results are those of the backends "pad" and "scan" up to rounding: at a step with
    ``is_init`` the state is the one that is stored there, and the states after each trajectory are returned where it
    ends. Parameters, state dicts and copies hold nothing of it.

    Returns
    -------
    Registration
        Its `remove()` undoes the call, and so does the end of `with register(): ...`. Calls may be nested; the last
        registration that is removed restores TorchRL's functions.

    Raises
    ------
    ImportError
        TorchRL is not installed.
    RuntimeError
        A version of TorchRL whose modules are not known; the message names it.

    Notes
    -----
    Served are `torch.nn.LSTM` and ``GRU`` and TorchRL's own classes of these names (``python_based=True``), and layers
    of `isometry.torch.nn` with ``batch_first=True``: ``LSTMModule(lstm=it.nn.LSTM(..., batch_first=True), ...)``, and
    in GRUModule every layer with one real vector as its state. Layers of two directions, with hooks, with weights that
    a hook computes or with ``proj_size``, on other devices and inside `torch.compile` are computed by TorchRL's own
    functions. ``recurrent_recompute="full"`` keeps the states at the borders of segments alone.

    Examples
    --------
    >>> from isometry.integrations.torchrl import register
    >>> with register():  # doctest: +SKIP
    ...     loss = loss_module(batch)
    """
    return _SWAPS.add()


def _unknown(why: str) -> RuntimeError:
    return RuntimeError(f"torchrl {version('torchrl')} is not known: {why}; isometry serves 0.14.1")


def _find() -> Iterable[Swap]:
    try:
        rnn: Any = import_module(_RNN)
    except ModuleNotFoundError as error:
        raise ImportError("register() needs TorchRL, which is not installed: pip install torchrl") from error
    swaps = []
    for name, attribute in _MODULES.items():
        if (module := getattr(rnn, name, None)) is None:
            raise _unknown(f"{_RNN} has no {name}")
        original = known(module, "forward", ("tensordict",), _unknown)
        swaps.append(Swap(module, "forward", _forward(rnn, original, attribute)))
    return swaps


def _forward(rnn: Any, original: Function, attribute: str) -> Function:
    """The `forward` of a module by the one of TorchRL, which computes what is not served."""

    @rnn.dispatch
    @wraps(original.__wrapped__ if hasattr(original, "__wrapped__") else original, updated=())
    def forward(self: Any, tensordict: Any) -> Any:
        served = _served(self, getattr(self, attribute), rnn)
        whole = bool(self.recurrent_mode)
        if served is None or (whole and tensordict.ndim == 0):
            return original(self, tensordict)
        shaped = _two_axes(tensordict) if whole else tensordict.reshape(-1).unsqueeze(-1)
        starts = shaped["is_init"].squeeze(-1)
        keys = self.in_keys[1 : len(self.out_keys)]
        x, given = shaped.get(self.in_keys[0], rnn.NO_DEFAULT), [shaped.get(key, None) for key in keys]
        states = None if all(t is None for t in given) else given
        if states is not None and any(t is None for t in states):
            raise RuntimeError(f"of the states {keys} all must be given or none")
        run = _trajectories if whole else _one_step
        for key, value in zip(self.out_keys, run(served, x, states, starts), strict=True):
            shaped.set(key, value)
        if tensordict.shape != shaped.shape or shaped is not tensordict:
            tensordict.update(shaped.reshape(tensordict.shape))
        return tensordict

    return forward  # type: ignore[no-any-return]


class _Served(NamedTuple):
    """A layer of ours, or that reads the parameters of another."""

    layer: Any
    step: Steps
    recompute: bool


def _served(module: Any, layer: Any, rnn: Any) -> _Served | None:
    """What computes a module; None for one that TorchRL computes itself."""
    if torch.compiler.is_compiling() or layer.bidirectional:
        return None
    if layer.dropout and module.recurrent_backend not in ("pad", "auto"):
        return None  # which TorchRL refuses
    recompute = module.recurrent_recompute == "full"
    if isinstance(layer, RecurrentLayer):
        parts = len(layer._starting_shapes())
        if layer.is_complex or layer._state != (parts * layer.hidden_size,) or parts != len(module.out_keys) - 1:
            return None
        if not layer._runs_as_defined or layer._forward_hooks or layer._forward_pre_hooks:
            return None
        return _Served(layer, vars(module).setdefault("_steps", Steps()), recompute)
    found = view(layer, {rnn.LSTM: nn.LSTM, rnn.GRU: nn.GRU})
    return None if found is None else _Served(found.layer, found.step, recompute)


def _two_axes(tensordict: Any) -> Any:
    """Trajectories (B, T)."""
    if tensordict.ndim == 1:
        return tensordict.unsqueeze(0)
    return tensordict if tensordict.ndim == 2 else tensordict.flatten(0, -2)


def _one_step(served: _Served, x: Tensor, states: list[Tensor] | None, starts: Tensor) -> list[Tensor]:
    """x (B, 1, d), states (B, 1, layers, n) -> the output and the states, of the same shapes."""
    if x.shape[1] != 1:
        raise ValueError("Expected a single step")
    layer, hx = served.layer, None
    if states is not None:
        again = starts[:, 0].unsqueeze(-1)
        hx = [t[:, 0].transpose(0, 1).masked_fill(again, 0) for t in states]
    new = served.step(layer, x[:, 0], hx if hx is None or len(hx) > 1 else hx[0])
    new = new if isinstance(new, tuple) else (new,)
    return [new[0][-1].unsqueeze(1), *(t.transpose(0, 1).unsqueeze(1) for t in new)]


def _trajectories(served: _Served, x: Tensor, states: list[Tensor] | None, starts: Tensor) -> list[Tensor]:
    """x (B, T, d), states (B, T, layers, n) -> the outputs (B, T, n), and the states (B, T, layers, n) where a
    trajectory ends, zero elsewhere.
    """
    layer, n = served.layer, served.layer.hidden_size
    x, marks = layer._widened(x.transpose(0, 1)), starts.transpose(0, 1)
    again = bool(marks[1:].any())
    # (T, B, layers, parts * n), of the first step alone where no other is read
    before = None if states is None else layer._widened(torch.cat([t if again else t[:, :1] for t in states], -1))
    before = None if before is None else before.transpose(0, 1)
    ends = torch.cat((marks[1:], torch.ones_like(marks[:1]))).unsqueeze(-1)
    lasts = []
    for k, suffix in enumerate(layer._suffixes):
        own = layer._start(suffix)
        start = own if before is None else before[:, :, k]
        law: dict[str, Any] = {"checkpoint": "sqrt" if served.recompute else layer.checkpoint}
        if again:
            law |= {"starts": marks, "start_state": start}
        h0 = start if before is None else before[0, :, k]
        reached = layer._run(Sweep(suffix, x, h0, **law))  # (T, B, parts * n)
        lasts.append(torch.where(ends, reached, 0))
        x = reached[..., :n]
        if layer.dropout and layer.training and k < layer.num_layers - 1:
            x = dropped(x, layer.dropout)
    found = layer._rounded(torch.stack(lasts, 2)).transpose(0, 1)
    return [layer._rounded(x).transpose(0, 1), *found.split(n, -1)]


_SWAPS = Swaps(_find)
