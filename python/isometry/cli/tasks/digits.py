"""Digits: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels (values 0..16), read pixel by pixel.

Of the images, in an order chosen by the seed, four fifths are trained on, a tenth validates and a tenth tests. With
`permuted` the pixels come in one random order, the same for all images and all runs.
"""

import numpy as np

from isometry.cli.tasks.images import Images

TRAINING_SHARE, VALIDATION_SHARE, BRIGHTEST = 0.8, 0.1, 16
SPLIT = 1  # gives the split and the batches separate generators
PERMUTATION = 0  # the seed of the order of permuted pixels


class Digits(Images):
    title = "Handwritten digits, pixel by pixel"

    def __init__(self, *, batch: int, seed: int, permuted: bool = False) -> None:
        from sklearn.datasets import load_digits

        data = load_digits()
        images = data.images * (255 / BRIGHTEST)
        order = np.random.default_rng((seed, SPLIT)).permutation(len(images))
        cuts = [int(share * order.size) for share in (TRAINING_SHARE, TRAINING_SHARE + VALIDATION_SHARE)]
        training, validation, test = ((images[part], data.target[part]) for part in np.split(order, cuts))
        pixels = np.random.default_rng(PERMUTATION).permutation(images[0].size) if permuted else None
        super().__init__(training, validation, test, batch=batch, permutation=pixels)
