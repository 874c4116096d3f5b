"""A state that symbols change: the product of permutations, and a count."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

import isometry

from ._task import Drawn

STEPS, MODULUS = 32, 5


class Permutations(Drawn):
    """At every step the product of all permutations of three elements so far."""

    inputs = outputs = 6
    last_only, chance = False, 1 / 6

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        symbols, products = isometry.tasks.permutations(STEPS, count, rng)
        return one_hot(torch.from_numpy(symbols), 6).float(), torch.from_numpy(products)


class Counting(Drawn):
    """At every step the number of ones so far, modulo five, among ones and four other symbols."""

    inputs = outputs = MODULUS
    last_only, chance = False, 1 / MODULUS

    def sequences(self, rng: Any, count: int) -> tuple[Tensor, Tensor]:
        symbols = torch.from_numpy(rng.integers(0, MODULUS, (2 * STEPS, count)))
        return one_hot(symbols, MODULUS).float(), (symbols == 1).cumsum(0) % MODULUS
