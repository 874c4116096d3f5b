"""Digits: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels (values 0..16), read pixel by pixel.

Of the images, in an order chosen by the seed, four fifths are trained on, a tenth validates and a tenth tests.
"""

from __future__ import annotations

import numpy as np

from isometry.cli.tasks.images import Images

TRAINING_SHARE, VALIDATION_SHARE, BRIGHTEST = 0.8, 0.1, 16
SPLIT = 1  # gives the split and the batches separate generators


class Digits(Images):
    title = "Handwritten digits, pixel by pixel"

    def __init__(self, *, batch: int, seed: int) -> None:
        from sklearn.datasets import load_digits

        data = load_digits()
        images = data.images * (255 / BRIGHTEST)
        order = np.random.default_rng((seed, SPLIT)).permutation(len(images))
        cuts = [int(share * order.size) for share in (TRAINING_SHARE, TRAINING_SHARE + VALIDATION_SHARE)]
        training, validation, test = ((images[part], data.target[part]) for part in np.split(order, cuts))
        super().__init__(training, validation, test, batch=batch)
