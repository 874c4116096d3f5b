"""<W x, y> = <x, W^H y>, the complex inner product included."""

import numpy as np

import reference as ref
from tolerance import forward


def adjoint(subject, rng):
    n_out, n_in = subject.reference().shape[-2:]
    x = ref.normal(rng, 3, *subject.batch_shape, n_in, dtype=subject.dtype)
    y = ref.normal(rng, 3, *subject.batch_shape, n_out, dtype=subject.dtype)
    image, back = ref.wide(subject.apply(x)), ref.wide(subject.apply_adjoint(y))
    assert image.shape == y.shape
    assert back.shape == x.shape
    gap = abs(np.vdot(y, image) - np.vdot(back, x))
    size = np.linalg.norm(image) * np.linalg.norm(y)
    assert gap <= forward(subject.dtype, subject.factors) * size, f"<Wx, y> - <x, W^H y> = {gap:.2e}"


def test_adjoint(make, seed):
    for n in (3, 8, 33):
        adjoint(make(n), seed)
    adjoint(make(6, (2, 1)), seed)
