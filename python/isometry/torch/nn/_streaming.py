"""One step per call, and W formed once for many calls: `step` and `cached` of every recurrent layer.

What is held is computed from the layer's parameters and buffers. Every use checks whether the identity, version,
address or ``requires_grad`` of one of them has changed, and then computes it again. So results do not depend on whether
a layer is cached, up to rounding, except after a change through ``.data``, which has no version, or of an attribute
such as ``nonlinearity``.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from ... import _core
from ..._rules import check_recurrence
from .._dispatch.function import arrays, place
from .._dispatch.mode import KERNEL, RECORDED, mode
from .._dispatch.private import global_forward_hooks, global_forward_pre_hooks
from .._hooks import computed, state_of
from ..operators._block_diagonal import BlockDiagonal
from ..operators.dense import Dense
from ..sequences._blocks import whole
from ..sequences._cells import CELLS
from ._contract import accepted, check_step
from ._plain import plain
from ._step import Kernel, OneStep, Step, step_of, stepped

#: Steps for which the cost of forming W does not count.
_MANY = 1 << 40


class _Unitary(Dense):
    """The matrix of a unitary operator."""

    __slots__ = ()

    def _unitary(self, always: bool) -> bool:
        del always
        return True


class Held:
    """What a `RecurrentLayer` inside `cached` has formed."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._sources: list[tuple[Mapping[str, Tensor | None], str, Tensor, int, int, bool]] = []
        self._transitions: dict[tuple[str, bool, bool], Any] = {}
        self._steps: tuple[list[OneStep], torch.dtype, torch.dtype] | None = None
        self._accepted: tuple[torch.dtype, ...] = ()  # dtypes of inputs and states

    def _fresh(self) -> bool:
        """Whether it still belongs to the layer's parameters and buffers; if not, forgets everything."""
        for owner, name, t, version, address, trained in self._sources:
            if owner.get(name) is not t or t._version != version or t.data_ptr() != address:
                break
            if t.requires_grad != trained:
                break
        else:
            if self._sources:
                return True
        self._transitions, self._steps, layer = {}, None, self._layer
        owners = layer._parameters, layer._buffers
        named = [(owner, name, t) for owner in owners for name, t in owner.items() if t is not None]
        # Weights that are computed (torch.nn.utils.parametrize, hooks) and tensors of inference mode have no version.
        if (
            layer._modules
            or computed(layer)
            or any(t.is_inference() for _, _, t in named)
            or mode(*self._tensors()) not in _EAGER
        ):
            self._sources = []
            return False
        self._sources = [(owner, name, t, t._version, t.data_ptr(), t.requires_grad) for owner, name, t in named]
        self._accepted = accepted(layer.weight_ih_l0.dtype, layer.is_complex)
        return True

    def _tensors(self) -> list[Tensor]:
        return state_of(self._layer)

    def transition(self, suffix: str) -> Any:
        """The operator W of one recurrence, formed unless its factors are cheaper even so."""
        layer = self._layer
        if mode(*self._tensors()) not in _EAGER or not self._fresh():
            return layer._whole(suffix)
        made, key = self._transitions, (suffix, torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        if key not in made:
            whole = layer._whole(suffix)
            blocks = isinstance(whole, BlockDiagonal)
            op = whole.operator if blocks else whole
            if _factored(op, op.dtype) is None:
                weight = op.matrix()
                if weight.requires_grad:
                    # Its graph is freed when its gradient has been computed.
                    weight.register_hook(partial(_forget, made, key))
                op = (_Unitary if op._unitary(True) else Dense)(weight)
            made[key] = BlockDiagonal(op) if blocks else op
        return made[key]

    def step(self, x: Any, state: Any) -> tuple[Tensor, Tensor] | None:
        """The output and the state after one step by the kernels alone; None where they do not serve or do not fit."""
        layer = self._layer
        if type(x) is not Tensor or not (state is None or type(state) is Tensor) or not self._fresh():
            return None
        traced = self._tensors() if torch.is_grad_enabled() else ()
        if mode(x, state, *traced) is not KERNEL:
            return None
        if x.dtype not in self._accepted or not (state is None or state.dtype in self._accepted):
            return None
        if self._steps is None:
            self._steps = self._prepare()
        return stepped(layer, x, state, *self._steps) if self._steps[0] else None

    @torch.no_grad()
    def _prepare(self) -> tuple[list[OneStep], torch.dtype, torch.dtype]:
        """Makes the steps, none for a layer that has no kernel of a step, and the dtypes of states and weights."""
        layer, each = self._layer, []
        for suffix in layer._suffixes if not layer.bidirectional and layer._runs_as_defined else ():
            kernel = layer._kernel(suffix)
            if not isinstance(kernel, Kernel):
                each.append(kernel)
            elif not CELLS[kernel.cell].declaration.memory(*kernel.settings):  # a step would have to return it
                each.append(self._made(suffix, kernel).run)
        stored, kind = layer.weight_ih_l0.dtype, layer._weight_dtype
        return each, kind.to_complex() if layer.is_complex else kind, stored

    def _made(self, suffix: str, kernel: Kernel) -> Step:
        layer, heads = self._layer, self._layer._heads
        given = {name: None if t is None else t.detach() for name, t in kernel.arrays.items()}
        kind = next(t.dtype for t in given.values() if t is not None)
        within = heads > 1 and check_recurrence.within_blocks(kernel.activation, layer.hidden_size // heads)
        stem: str = ""
        own: tuple[Any, ...] = ()
        if hasattr(layer, "_transition"):
            op = self.transition(suffix)
            op = op.operator if within else op
            stem, own = _factored(op, kind) or ("dense", (op.matrix().to(kind),))
            own = tuple([None if t is None else t.detach() for t in own])
        start = layer._start(suffix)
        start = None if start is None else start.detach()
        if heads > 1 and not within:
            given = whole(CELLS[kernel.cell].declaration, given)
        return step_of(layer, kernel._replace(arrays=given), (stem, own), start, heads if within else None, packed=kind)


def _factored(op: Any, dtype: torch.dtype) -> tuple[str, tuple[Tensor | None, ...]] | None:
    """The object of W and its arguments, where steps by its factors are cheaper even so; the GPU keeps W itself."""
    factors: tuple[str, tuple[Tensor | None, ...]] | None = op._factors(dtype)
    if factors is None or place(None) == "gpu":
        return factors
    stem, arguments = factors
    return factors if _core.recurrence_route(stem, arrays(arguments), _MANY, 1, True) == "factored" else None


_EAGER = (KERNEL, RECORDED)
#: By layer and thread: a context can be copied to another thread.
_HELD: ContextVar[Mapping[tuple[Any, int], Held]] = ContextVar("isometry_held", default=MappingProxyType({}))


def _forget(made: dict[Any, Any], key: Any, _gradient: Tensor) -> None:
    """A hook of W; a result would replace its gradient."""
    made.pop(key, None)


def held(layer: Any) -> Held | None:
    """What the layer holds, if this thread is inside its `cached`; nothing is held in a graph of the compiler, nor
    where a forward pre-hook may compute weights.
    """
    own = None if is_compiling() else _HELD.get().get((layer, get_ident()))
    return None if own is None or layer._forward_pre_hooks else own


def _observed(layer: Any, input: Any) -> bool:
    """Whether a hook sees calls of the layer, so that a step must be one; or the input is not that of a step."""
    if layer._forward_hooks or layer._forward_pre_hooks or global_forward_hooks or global_forward_pre_hooks:
        return True
    return not (isinstance(input, Tensor) and input.layout is torch.strided and input.dim() < 3)


def held_for_steps(layer: Any, input: Any) -> Held | None:
    """What the layer holds, for the input of a step that need not be a call of the layer."""
    return None if _observed(layer, input) else held(layer)


class Cached:
    """A context in which `held` is not None. No generator, which would leave the context when it is collected.

    One that is entered again still has what it held.
    """

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._held = Held(layer)
        self._outer: list[bool] = []  # of the entries that have not ended, whether they are the layer's outermost

    def __enter__(self) -> None:
        now, key = _HELD.get(), (self._layer, get_ident())
        self._outer.append(key not in now)
        if self._outer[-1]:
            _HELD.set({**now, key: self._held})

    def __exit__(self, *_: object) -> None:
        if self._outer.pop():  # contexts of several layers may end in any order
            own = self._layer, get_ident()
            _HELD.set({key: what for key, what in _HELD.get().items() if key != own})


class Stepping:
    """The methods of layers whose inputs arrive one at a time."""

    batch_first: bool
    bidirectional: bool
    __call__: Any
    _one_state: Any
    _parted: Any
    _separate = False  # whether that copies
    _runs_as_defined: Any

    def step(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The state after one time step, for inputs that arrive one at a time.

        Parameters
        ----------
        input : Tensor, shape (B, input_size) or (input_size,)
            The input of this step.
        hx : Tensor, shape (num_layers, B, hidden_size), or (num_layers, hidden_size) without a batch, optional
            The state before it, of all layers; by default as in a call of the layer. A pair of them where the
            state is a pair, as in an `LSTM`.

        Returns
        -------
        Tensor
            The state after it, shaped as ``hx``: the ``h_n`` of a call of the layer with a sequence of this one step.
            Its last row, ``[-1]``, is the output; of a pair, that of the first part.

        Raises
        ------
        ValueError
            For a layer of two directions, of which one starts at the end of a sequence, and for an input of more
            dimensions. Other errors are those of a call.

        Notes
        -----
        A step is a call of the layer, with its hooks, and forms W. Inside :meth:`cached`, without hooks, it does not,
        and costs about as much as a step of ``torch.nn.RNN``. In half precision the state is rounded at every step, by
        a call of the layer only at the end.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> layer, x, state = it.nn.ScoRNN(3, 8), torch.randn(20, 5, 3), None
        >>> with torch.no_grad(), layer.cached():
        ...     for x_t in x:
        ...         state = layer.step(x_t, state)
        >>> torch.allclose(state, layer(x)[1], atol=1e-5)
        True
        """
        if not _observed(self, input):
            own = held(self)
            x = input if input.dim() == 2 else input.unsqueeze(0)
            lead, as_defined = tuple(input.shape[:-1]), self._runs_as_defined and not self.bidirectional
            by = plain(self, x, hx, lead, own is not None, False) if as_defined else None
            if by is not None:
                return by[1] if self._separate else by[1][0]  # type: ignore[return-value]
            if own is not None and (found := own.step(input, self._one_state(hx, input, True))) is not None:
                return self._parted(found[1])
        check_step(self, input)
        return self(input.unsqueeze(int(self.batch_first and input.dim() == 2)), hx)[1]

    def cached(self) -> AbstractContextManager[None]:
        """A context in which W is formed once, for calls of the layer and of :meth:`step`.

        W is formed when it is first needed, and again after a parameter or buffer has changed: by an optimiser,
        ``load_state_dict``, another device. As in autograd, a change through ``.data`` in place is not seen.

        With gradients, calls share one W and its graph, so one ``backward()`` serves them all. When it has computed
        the gradient of W, the next call forms W again.

        The context holds for the thread, or the asynchronous task, that entered it, not for threads started inside.
        Contexts of the same layer can be nested, and share W. `torch.compile`, `torch.func` and forward mode form W as
        they do outside. `torch.utils.checkpoint` with ``use_reentrant=False`` raises a CheckpointError inside, since
        the recomputation does not form W again. Do not set attributes of the layer, such as ``nonlinearity``, inside.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> layer = it.nn.ORNN(3, 8)
        >>> with torch.no_grad(), layer.cached():
        ...     state = layer.step(torch.randn(3))
        ...     state = layer.step(torch.randn(3), state)
        >>> state.shape
        torch.Size([1, 8])
        """
        return Cached(self)
