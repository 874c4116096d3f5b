"""Permuted pixels: like `pixels`, in an order drawn from the seed `permutation`, the same for all images and all
runs."""

import numpy as np

from isometry._rules import check
from isometry.cli.tasks.pixels import Pixels


class PermutedPixels(Pixels):
    title = "Images, pixel by pixel in a permuted order"

    def __init__(self, *, batch: int, data: str | None = None, permutation: int = 0) -> None:
        self.seed = check.count("permutation", permutation, 0)
        super().__init__(batch=batch, data=data)

    def order(self, pixels: int) -> np.ndarray:
        return np.random.default_rng(self.seed).permutation(pixels)
