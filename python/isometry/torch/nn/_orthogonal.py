"""The plain recurrent layer h <- phi(W h + V x + b) with an orthogonal or unitary W of some parametrisation."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor, nn

from ... import _check_recurrence
from ..recurrence import recurrence
from ._base import LayerKeywords
from ._transition import TransitionLayer


class OrthogonalRNN(TransitionLayer):
    """A layer whose W is an operator that a subclass names; it sets ``is_complex`` if W is complex."""

    _own_keywords: tuple[str, ...] = ("nonlinearity",)
    slope = 0.1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        nonlinearity: str,
        **keywords: Unpack[LayerKeywords],
    ) -> None:
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, **keywords)

    # ------------------------------------------------------------ hooks of the base class

    def _check_keywords(self) -> None:
        _check_recurrence.activation(self.nonlinearity, "nonlinearity")
        per_unit = _check_recurrence.ACTIVATIONS[self.nonlinearity][1]
        bias = (self.hidden_size // per_unit,) if per_unit else None
        # The length of modReLU's own bias, which replaces the additive one; 0 for other activations.
        self._biased_units = _check_recurrence.activation_units(
            self.nonlinearity, self.hidden_size, bias, complex_=self.is_complex, features_of="hidden_size"
        )

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        n = self.hidden_size
        shapes = {"weight_ih": self._stored(n, features), **self._transition_shapes()}
        if self.bias:
            shapes |= {"activation_bias": (self._biased_units,)} if self._biased_units else {"bias": self._stored(n)}
        return shapes

    def _reset(self, suffix: str) -> None:
        weight = getattr(self, "weight_ih" + suffix)
        bound = math.sqrt(6 / (weight.size(0) + weight.size(1)))
        nn.init.uniform_(weight, -bound, bound)
        if self.bias:
            nn.init.zeros_(getattr(self, ("activation_bias" if self._biased_units else "bias") + suffix))
        self._reset_transition(suffix)

    def _run(self, suffix: str, x: Tensor, h0: Tensor | None, lengths: Tensor | None, reverse: bool) -> Tensor:
        weight = self._value("weight_ih" + suffix)
        bias = activation_bias = None
        if not self._biased_units:
            bias = self._value("bias" + suffix) if self.bias else None
        elif self.bias:
            activation_bias = getattr(self, "activation_bias" + suffix)
        else:  # modReLU needs a bias: zero if it is not trained
            activation_bias = torch.zeros(self._biased_units, dtype=self._weight_dtype, device=weight.device)
        states: Tensor = recurrence(
            self._transition(suffix),
            x,
            weight,
            h0=h0,
            bias=bias,
            activation=self.nonlinearity,
            activation_bias=activation_bias,
            slope=self.slope,
            lengths=lengths,
            reverse=reverse,
        )
        return states
