"""Pixels: images of MNIST, or of any set in its files, read pixel by pixel (isometry.cli.tasks.mnist)."""

import numpy as np

from isometry.cli.tasks import mnist
from isometry.cli.tasks.images import Images


class Pixels(Images):
    title = "Images, pixel by pixel"

    def __init__(self, *, batch: int, data: str | None = None) -> None:
        parts = mnist.split(data)
        order = self.order(parts[0][0][0].size)
        super().__init__(*parts, batch=batch, permutation=order)

    def order(self, _pixels: int) -> np.ndarray | None:
        """The order of the pixels; None: row by row."""
        return None
