"""RNN: torch's recurrent layer with a free W, or with any operator as W."""

from collections.abc import Callable, Iterator
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from ..._rules import check, check_recurrence
from ..operators._block_diagonal import diagonal
from ..operators._declared import Declared
from ..operators._operator import Operator
from ..operators.cayley import Cayley
from ..operators.dense import Dense
from ._contract import HeadKeywords
from ._transition import Owned, PlainLayer
from .operator_module import OperatorModule


class RNN(PlainLayer):
    r"""The layer of ``torch.nn.RNN`` on the kernels of this package, with an unconstrained W or any operator as W.

    .. math::

        h_t = \phi(W h_{t-1} + b' + V x_t + b)

    Use it for state tracking, permutations 1.000 with ReLU, or with an operator of your own as W. Do not use it for
    longer sequences to classify: mnist 0.271 at best, `RUM` 0.891.

    Parameters
    ----------
    input_size, hidden_size, num_layers, nonlinearity, bias, batch_first, dropout, bidirectional
        As in ``torch.nn.RNN``, in its order; the nonlinearity phi is any of the names of `activate`.
    transition : callable, optional
        Called with n = hidden_size for every layer and direction, in the order of ``h_n``: returns the operator W, of
        this package or of a class of your own. Its trained arguments become parameters of the layer, as in
        `OperatorModule`; an operator of your own is stored as it is. With a complex operator the states are complex.
        A module is called as any function is, when the layer is made: its own parameters are not those of the layer,
        except a `torch.nn.Parameter` that is an argument of the operator.
    **keywords
        The keywords of :class:`ORNN` from ``trainable_h0`` on, including ``checkpoint`` and ``last_only``.

    Attributes
    ----------
    weight_ih_l{k}[_reverse] : Parameter
        V (hidden_size, features).
    weight_hh_l{k}[_reverse] : Parameter
        W (hidden_size, hidden_size); absent with a ``transition``.
    bias_ih_l{k}[_reverse], bias_hh_l{k}[_reverse] : Parameter
        b and b' (hidden_size); absent for the modReLUs, which have only ``activation_bias_l{k}``.
    transition_l{k}[_reverse] : OperatorModule
        W, with a ``transition``.

    See Also
    --------
    ORNN : an orthogonal W.
    from_torch : converts torch's layer.
    isometry.torch.recurrence : as a function.
    :doc:`choosing` : which layer for which task, with the study that is quoted above.
    :doc:`faster-gru` : torch's own layers on these kernels.

    Notes
    -----
    Names, shapes, the state dict and the initial draws are those of ``torch.nn.RNN``; `from_torch` and `to_torch`
    convert. With a ``transition``, W is formed at every call even inside `cached`.

    References
    ----------
    Elman. Finding structure in time. Cognitive Science 1990.

    Examples
    --------
    >>> import torch
    >>> import isometry.torch as it
    >>> layer = it.nn.RNN(3, 8)
    >>> output, h_n = layer(torch.randn(20, 5, 3))
    >>> output.shape, h_n.shape
    (torch.Size([20, 5, 8]), torch.Size([1, 5, 8]))
    >>> layer = it.nn.RNN(3, 8, transition=it.Cayley.random)
    >>> bool(it.orthogonality_error(layer.recurrent_matrix()) < 20)
    True
    """

    transition: Callable[[int], Operator] | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        transition: Callable[[int], Operator] | None = None,
        **keywords: Unpack[HeadKeywords],
    ) -> None:
        if transition is not None and (isinstance(transition, Operator) or not callable(transition)):
            check.kind("transition", "a function of n that returns an operator", transition)
        self.nonlinearity = nonlinearity
        vars(self)["transition"] = transition  # no submodule where it is one: its parameters are not the layer's
        self._drawn: list[OperatorModule] = []
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, **keywords)

    # ------------------------------------------------------------ hooks

    def _check_keywords(self) -> None:
        self._drawn = self._operators()
        self.is_complex = any(module.operator().dtype.is_complex for module in self._drawn)
        super()._check_keywords()

    def _unitary(self) -> bool:
        return bool(self._drawn) and all(module.operator()._unitary(True) for module in self._drawn)

    def _bias_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("bias_ih", "bias_hh"), self._stored(self.hidden_size))

    def _transition_shapes(self) -> dict[str, tuple[int, ...]]:
        n = self._head_size
        return {} if self.transition is not None else {"weight_hh": self._of_heads(n, n)}

    def _reset(self, suffix: str) -> None:
        self._draw_as_torch(suffix)

    def reset_parameters(self) -> None:
        """Draw all initial values again; ``torch.manual_seed`` makes them reproducible."""
        weight = self.weight_ih_l0
        for suffix, drawn in zip(self._suffixes, self._drawn or self._operators(), strict=False):
            self.add_module("transition" + suffix, drawn.to(device=weight.device, dtype=weight.dtype))
        self._drawn = []
        super().reset_parameters()

    def _operators(self) -> list[OperatorModule]:
        """New operators of all layers and directions; none without a transition."""
        if self.transition is None:
            return []
        count = self.num_layers * (1 + self.bidirectional)
        made = [self.transition(self._head_size) for _ in range(count * self._heads)]
        for operator in made:
            if not isinstance(operator, Operator):
                check.kind("transition(n)", "an operator of isometry.torch", operator)
            check_recurrence.recurrence_transition(operator.shape, operator.batch_shape)
            check_recurrence.layer_transition(type(self).__name__, operator.shape, self._head_size)
        if self._heads > 1:
            made = [_stack(made[i * self._heads : (i + 1) * self._heads]) for i in range(count)]
        return [OperatorModule(operator) for operator in made]

    def _as_given(self, suffix: str) -> tuple[Tensor, ...] | None:
        return None if self.transition is not None else (self._read("weight_hh" + suffix),)

    def _transition(self, suffix: str) -> Any:
        if self.transition is None:
            return Dense(self._read("weight_hh" + suffix))
        return getattr(self, "transition" + suffix).operator()

    def _of_transition(self, suffix: str) -> Owned:
        if self.transition is None:
            return super()._of_transition(suffix)
        owner = getattr(self, "transition" + suffix)
        return {name: (owner._parameters, name) for name in owner._names if name and name not in owner._buffers}

    def _inverse(self, w: Tensor, suffix: str, bound: float) -> dict[str, Tensor]:
        if self.transition is None:
            return {"weight_hh": w}
        operator = self._transition(suffix)
        inverse, owned = getattr(type(operator), "from_matrix", None), self._of_transition(suffix)
        if inverse is None or not all(hasattr(operator, name) for name in owned):
            raise ValueError(f"{type(operator).__name__} has no map from W to its parameters")
        fixed = {}
        if isinstance(operator, Cayley) and "phases" not in owned:
            signs = operator.signs
            fixed = {"signs": w.real.new_ones(w.shape[:-1]) if signs is None else signs.to(w.device, torch.float64)}
        found = inverse(self._nearest(w, bound), **fixed)
        return {name: getattr(found, name) for name in owned}

    def _dense(self, w: Tensor) -> Tensor:
        return w if self._heads == 1 else diagonal(w)

    def _bias(self, suffix: str) -> Tensor:
        return self._value("bias_ih" + suffix) + self._value("bias_hh" + suffix)

    def recurrent_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters of W, of every layer and direction, for a separate learning rate."""
        if self.transition is None:
            yield from super().recurrent_parameters()
        for suffix in self._suffixes if self.transition is not None else ():
            yield from getattr(self, "transition" + suffix).parameters()


def _stack(operators: list[Any]) -> Any:
    """The stack of single operators; ValueError where they do not make one."""
    first = operators[0]
    alike = isinstance(first, Declared) and all(type(op) is type(first) for op in operators)
    every = [list(zip(op._flat, op._arrays, strict=True)) for op in operators] if alike else []
    alike = alike and all(_form(own) == _form(every[0]) for own in every)
    if not alike:
        raise ValueError(
            "transition must give operators of one class of this package and the same sizes with heads > 1"
        )
    arrays = []
    for argument, *same in zip(first._flat, *[op._arrays for op in operators], strict=True):
        shared = same[0] is None or argument.kind in ("shape", "number")
        arrays.append(same[0] if shared else torch.stack([t.detach() for t in same]))
    return type(first)._of(arrays)


def _form(held: list[tuple[Any, Any]]) -> list[Any]:
    """What the arguments of the members of a stack have in common: their shapes, and numbers."""
    return [None if t is None else float(t) if a.kind == "number" else (t.shape, t.dtype) for a, t in held]
