"""The states of all steps, with those before them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Flags = Sequence[bool]


class History(NamedTuple):
    """What a sequence has gone through."""

    states: Tensor  #: (T, B, n), kept past the end of a sequence
    first: Tensor  #: (B, n), before the first step
    reverse: bool

    @property
    def before(self) -> Tensor:
        """The states before every step."""
        first = self.first.unsqueeze(0)
        return torch.cat((self.states[1:], first) if self.reverse else (first, self.states[:-1]))

    def product(self, bars: Tensor) -> Tensor:
        """The gradient of W in W h, sum of bars_t^T conj(h before t), as one product over all steps."""
        return bars.flatten(0, 1).mT @ self.before.flatten(0, 1).conj()
