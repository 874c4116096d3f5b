"""Operators made of one under test, as subjects of the same laws: its adjoint, its columns, a product with it twice.

    OfAdjoint   W^H          gradient of W: C^H
    OfColumns   W E          gradient of W: C E^H
    OfProduct   W R W^H      gradient of W: C W R^H + C^H W R
    OfBlocks    diag(W, W')  gradients of W and W': the blocks of C

for a cotangent C, a fixed matrix R and the first columns E of the unit matrix. Each is put before a face, or before
the textbook.
"""

import numpy as np

import reference as ref
from registry import spread
from subjects import IN_FACE, Subject


def hermitian(w):
    return np.swapaxes(np.conj(w), -1, -2)


def of_matrices(key):
    """What a key of the batch axes is for the matrices: their own axes follow behind one `...`."""
    parts = key if isinstance(key, tuple) else (key,)
    return (*parts, *(() if any(part is ... for part in parts) else (...,)), slice(None), slice(None))


class OfAdjoint:
    def operator(self, given=None):
        return super().operator(given).H

    def reference(self):
        return hermitian(super().reference())

    def reference_matrix_vjp(self, w_bar):
        return super().reference_matrix_vjp(hermitian(w_bar))


class OfColumns:
    @property
    def count(self):
        return -(-super().reference().shape[-1] // 2)

    def operator(self, given=None):
        return super().operator(given).columns(self.count)

    def reference(self):
        return super().reference()[..., : self.count]

    def reference_matrix_vjp(self, w_bar):
        full = np.zeros(super().reference().shape, w_bar.dtype)
        full[..., : self.count] = w_bar
        return super().reference_matrix_vjp(full)


class OfProduct:
    @property
    def factors(self):
        return 3 * super().factors

    @property
    def invertible(self):
        return False

    def middle(self):
        n = super().reference().shape[-1]
        return (ref.normal(np.random.default_rng(0), n, n, dtype=self.dtype) / np.sqrt(n)).astype(self.dtype)

    def operator(self, given=None):
        w = super().operator(given)
        return w @ self.package.Dense(self.given(self.middle())) @ w.H

    def reference(self):
        w = super().reference()
        return w @ self.middle() @ hermitian(w)

    def reference_matrix_vjp(self, w_bar):
        w, r = super().reference(), self.middle()
        return super().reference_matrix_vjp(w_bar @ w @ hermitian(r) + hermitian(w_bar) @ w @ r)

    # The NumPy face gives the gradients of each factor; torch has added those of the two places.

    def joined(self, grads):
        if "operators" not in grads:
            return grads
        left, middle, right = map(spread, grads["operators"])
        assert set(middle) == {"weight"}
        assert left.keys() == right.keys()
        return {k: left[k] + right[k] for k in left}

    def apply_vjp(self, x, ct):
        grads, x_bar = super().apply_vjp(x, ct)
        return self.joined(grads), x_bar

    def matrix_vjp(self, ct):
        return self.joined(super().matrix_vjp(ct))

    def recurrence_vjp(self, *arrays, **keywords):
        grads = super().recurrence_vjp(*arrays, **keywords)
        return {**grads, "transition": self.joined(grads["transition"])}


class OfBlocks:
    """Two operators drawn alike, the last axis of a stack."""

    @classmethod
    def draw(cls, case, rng, n=6, batch=()):
        return super().draw(case, rng, n, (*batch, 2))

    def batch_of(self, name):
        return super().batch_of(name)[:-1]

    def operator(self, given=None):
        return self.package.BlockDiagonal(super().operator(given))

    def stack(self):
        return Subject(self.case, self.arguments, n=self.n)

    def reference(self):
        first, second = np.moveaxis(self.stack().reference(), -3, 0)
        zero = np.zeros_like(first)
        return np.block([[first, zero], [zero, second]])

    def reference_matrix_vjp(self, w_bar):
        p, q = (size // 2 for size in w_bar.shape[-2:])
        blocks = np.stack([w_bar[..., :p, :q], w_bar[..., p:, q:]], -3)
        return self.stack().reference_matrix_vjp(blocks)


SQUARE = {"adjoint": OfAdjoint, "product": OfProduct, "blocks": OfBlocks}  # where the operator is
FORMS = {**SQUARE, "columns": OfColumns}


def formed(form, face):
    """The class of subjects of one form in one face."""
    return type(f"{form} in {face}", (FORMS[form], IN_FACE[face]), {})
