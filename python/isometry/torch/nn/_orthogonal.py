"""The plain recurrent layer h <- phi(W h + V x + b) with an orthogonal or unitary W of some parametrisation."""

from __future__ import annotations

from typing import Any, Unpack

from torch import Tensor

from ..._rules import check_recurrence
from ..sequences.recurrence import recurrence
from ._keywords import LayerKeywords, Marks, Output
from ._streaming import Kernel
from ._transition import TransitionLayer


class OrthogonalRNN(TransitionLayer):
    """A layer whose W is an operator that a subclass names; it sets ``is_complex`` if W is complex."""

    _own_keywords: tuple[str, ...] = ("nonlinearity",)
    slope = 0.1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        nonlinearity: str = "modrelu",
        **keywords: Unpack[LayerKeywords],
    ) -> None:
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    # ------------------------------------------------------------ hooks of the base class

    def _check_keywords(self) -> None:
        super()._check_keywords()
        if self.checkpoint == "reversible":
            check_recurrence.reversible(self.nonlinearity, False, self._unitary(), "nonlinearity")

    def _unitary(self) -> bool:
        """Whether W is orthogonal or unitary for all parameters."""
        return self._object._declaration.unitary

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        n = self.hidden_size
        shapes = {"weight_ih": self._stored(n, features), **self._transition_shapes()}
        if self.bias:
            shapes |= {"activation_bias": (self._biased_units,)} if self._biased_units else {"bias": self._stored(n)}
        return shapes

    def _reset(self, suffix: str) -> None:
        self._draw_weights(suffix, "weight_ih")
        self._reset_transition(suffix)

    def _run(
        self,
        suffix: str,
        x: Tensor,
        h0: Tensor | None,
        lengths: Tensor | None,
        reverse: bool,
        output: Output,
        marks: Marks,
    ) -> Tensor:
        law: dict[str, Any] = {"activation": self.nonlinearity, "slope": self.slope, "checkpoint": self.checkpoint}
        law |= {"lengths": lengths, "reverse": reverse, "output": output}
        return recurrence(self._operator(suffix), x, h0=h0, **law | self._arrays(suffix), **marks)

    def _arrays(self, suffix: str) -> dict[str, Tensor | None]:
        """The arrays of `recurrence` that are parameters."""
        return {
            "input_weight": self._value("weight_ih" + suffix),
            "bias": self._value("bias" + suffix) if self.bias and not self._biased_units else None,
            "activation_bias": self._activation_bias(suffix),
        }

    def _kernel(self, suffix: str) -> Kernel:
        return Kernel("recurrence", (False,), self.nonlinearity, self.slope, self._arrays(suffix))
