"""The parameters and buffers of a recurrent layer: names, stored forms, precision, initial values."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ..._rules import check
from .._dispatch.function import widened
from .._hooks import settle
from .._stored import Contiguous, unpaired


class LayerParameters(Contiguous):
    """Those of ``num_layers`` recurrences, each in one or two directions.

    With D directions, the recurrence of layer k and direction r is number ``D k + r`` of ``h_0`` and ``h_n``, its
    parameters have the suffix ``_l{k}`` or ``_l{k}_reverse``, and it reads the D concatenated outputs of layer k - 1.
    """

    input_size: int
    hidden_size: int
    num_layers: int
    bidirectional: bool
    _heads: int
    trainable_h0: bool
    weight_ih_l0: nn.Parameter
    _as_stored: Any

    is_complex: bool = False
    """Whether the states are complex."""

    proj_size = 0
    """torch's projection of the output, which no layer has."""

    def _register(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        """Make all of them, without values."""
        self._directions = 2 if self.bidirectional else 1
        self._suffixes = self._all_suffixes()
        for number, suffix in enumerate(self._suffixes):
            features = self.input_size if number < self._directions else self.hidden_size * self._directions
            shapes = self._shapes(features)
            if self.trainable_h0:
                shapes |= self._starting_shapes()
            self._names = list(shapes)
            for name, shape in shapes.items():
                self.register_parameter(name + suffix, nn.Parameter(torch.empty(shape, device=device, dtype=dtype)))
            for name, value in self._fixed_of_heads().items():
                weight = getattr(self, "weight_ih" + suffix)
                kind = weight.dtype if value.is_floating_point() else value.dtype
                self.register_buffer(name + suffix, torch.empty_like(value, device=weight.device, dtype=kind))

    # ------------------------------------------------------------ hooks

    def _all_suffixes(self) -> list[str]:
        """The suffixes of the recurrences, in the order of ``h_n``."""
        ways = ("", "_reverse")[: self._directions]
        return [f"_l{k}{way}" for k in range(self.num_layers) for way in ways]

    def _shapes(self, features: int) -> dict[str, tuple[int, ...]]:
        """Names and stored shapes of the parameters of one recurrence that reads ``features`` inputs."""
        raise NotImplementedError(f"{type(self).__name__} must define _shapes()")

    def _fixed(self) -> dict[str, Tensor]:
        """Names and values, on the CPU, of the buffers of one recurrence, with heads of each: untrained data that
        determines W.
        """
        return {}

    def _reset(self, suffix: str) -> None:
        """Draws the initial values of one recurrence; runs under ``no_grad``, with ``h0`` and biases already zero."""
        raise NotImplementedError(f"{type(self).__name__} must define _reset()")

    # ------------------------------------------------------------ heads

    @property
    def _head_size(self) -> int:
        """The units of one head: W has blocks of this size."""
        return self.hidden_size // self._heads

    def _of_heads(self, *shape: int) -> tuple[int, ...]:
        """The shape of what every head has one of."""
        return (self._heads, *shape) if self._heads > 1 else shape

    def _fixed_of_heads(self) -> dict[str, Tensor]:
        """`_fixed` for all heads."""
        return {name: value.expand(self._of_heads(*value.shape)) for name, value in self._fixed().items()}

    def _units_of(self, name: str) -> int:
        """The units that a weight takes to."""
        return self._head_size if name == "weight_hh" else self.hidden_size

    def _draw_weights(self, suffix: str, *names: str) -> None:
        """Draws Glorot's initial values of weights that take the input or the state to n units."""
        for name in names:
            weight = getattr(self, name + suffix)
            bound = math.sqrt(6 / (self._units_of(name) + weight.size(-2 if self.is_complex else -1)))
            nn.init.uniform_(weight, -bound, bound)

    def _draw_as_torch(self, suffix: str, units: int | None = None) -> None:
        """Draws the initial values of torch's layers, of all weights and biases but modReLU's, for so many units."""
        for name in self._names:
            if name.startswith(("weight", "bias")):
                bound = 1 / math.sqrt(units or self._units_of(name))
                nn.init.uniform_(getattr(self, name + suffix), -bound, bound)

    @property
    def _state(self) -> tuple[int, ...]:
        """The shape of the state of one sequence."""
        return (self.hidden_size,)

    def _starting_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and stored shapes of the trained initial state of one recurrence."""
        return {"h0": self._stored(*self._state)}

    def _start(self, suffix: str) -> Tensor | None:
        """The trained initial state of one recurrence, if there is one."""
        return self._value("h0" + suffix) if self.trainable_h0 else None

    # ------------------------------------------------------------ of all recurrences

    @property
    def output_size(self) -> int:
        """The real features of an output, of all directions: two for each complex number, as `RealState` makes them."""
        return self.hidden_size * self._directions * (2 if self.is_complex else 1)

    @property
    def all_weights(self) -> list[list[nn.Parameter]]:
        """The parameters of each recurrence, in the order of ``h_n``; those of the input first, as torch has them."""
        settle(self, "all_weights")
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _all_weights(self) -> list[list[str]]:
        """Their names, which programs written for torch's layers read, and by which they initialise."""
        names = sorted(self._names, key=lambda name: name != "weight_ih")
        return [[name + suffix for name in names] for suffix in self._suffixes]

    def reset_parameters(self) -> None:
        """Draw all initial values again, and set the buffers; ``torch.manual_seed`` makes them reproducible."""
        with torch.no_grad():
            for suffix in self._suffixes:
                for name, value in self._fixed_of_heads().items():
                    getattr(self, name + suffix).copy_(value)
                for name in self._names:
                    if name in self._starting_shapes() or name.endswith("bias"):
                        getattr(self, name + suffix).zero_()
                self._reset(suffix)

    def recurrent_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters of a transition W that has a learning rate of its own; none in the GRU and the RUM."""
        return iter(())

    def flatten_parameters(self) -> None:
        """Do nothing; provided for programs written for ``torch.nn.RNN``."""

    @property
    def _weight_dtype(self) -> torch.dtype:
        """The precision of the computation: that of the weights, float32 for half-precision ones."""
        return torch.promote_types(self.weight_ih_l0.dtype, torch.float32)

    def _read(self, name: str) -> Tensor:
        """A parameter or buffer in the precision of the computation."""
        stored = self._parameters.get(name)  # without the detour of an attribute, which a hook or a parametrization has
        return widened(getattr(self, name) if stored is None else stored)

    def _as_given(self, _suffix: str) -> tuple[Tensor, ...] | None:
        """W of one recurrence where a call reads it as it is stored, nothing where the arrays of the cell have it; None
        where it is computed, or where a step is more than a kernel.
        """
        return None

    def _apart(self, suffix: str) -> tuple[Any, Tensor | None]:
        """The kernel of a recurrence with arrays as they are stored, and what adds to its bias."""
        return self._as_stored(suffix), None

    def _stored(self, *shape: int) -> tuple[int, ...]:
        """The stored shape of a quantity with the states' field: pairs (real, imaginary) in a last axis."""
        return (*shape, 2) if self.is_complex else shape

    def _value(self, name: str) -> Tensor:
        """A parameter stored by ``_stored``, as the real or complex tensor it represents."""
        stored = self._read(name)
        return unpaired(stored) if self.is_complex else stored

    def _suffix(self, layer: int, reverse: bool) -> str:
        """The suffix of one recurrence; IndexError or ValueError if it does not exist."""
        reverse = check.flag("reverse", reverse)
        number = check.whole("layer", layer)
        if not 0 <= number < self.num_layers:
            raise IndexError(f"layer should lie in 0..{self.num_layers - 1}, got {number}")
        if reverse and not self.bidirectional:
            raise ValueError("reverse=True needs a bidirectional layer, got bidirectional=False")
        return self._suffixes[number * self._directions + int(reverse)]
