"""The gated recurrent unit whose W_h is an operator."""

from functools import reduce

import numpy as np
import torch

import isometry.torch as it
import reference as ref
from registry.cells.entry import CAYLEY, DENSE, REFLECTION, REFLECTIONS, Cell, Transition, Variant
from registry.cells.gru import ARRAYS, BIAS


def states(transition, w, **arguments):
    return ref.gru(w=np.concatenate((w, transition[None])), **arguments)


class Shear(it.Operator):
    """An operator of one's own: I + a above the diagonal."""

    def __init__(self, a):
        super().__init__(shape=(len(a) + 1,) * 2, dtype=a.dtype)
        self.a = a

    def matrix(self, *, backend=None, check_finite=True):  # noqa: ARG002
        return torch.eye(self.shape[0], dtype=self.dtype, device=self.a.device) + torch.diag(self.a, 1)


KRONECKER = Transition(
    lambda n: [(2, 2), (n // 2, n // 2)],
    lambda face, *factors: face.Kronecker(factors),
    lambda *factors: reduce(np.kron, factors),
)
ADJOINT = Transition(REFLECTIONS.shapes, lambda face, u: face.Householder(u).H, lambda u: ref.householder(u).T)
COMPOSITION = Transition(
    lambda n: [(n, 1), (n, n)],
    lambda face, u, w: face.Householder(u) @ face.Dense(w),
    lambda u, w: ref.householder(u) @ w,
)
OWN = Transition(lambda n: [(n - 1,)], lambda _, a: Shear(a), lambda a: np.eye(len(a) + 1) + np.diag(a, 1))

GORU = Cell(
    stem="goru",
    arrays={**ARRAYS, "w": "2 n n"},
    states=states,
    mistakes=(
        ({"reset": "never"}, ValueError, "reset must be 'before' or 'after'"),
        ({"hidden_bias": BIAS}, TypeError, "hidden_bias"),
    ),
    variants={
        "by factors": Variant(transition=REFLECTION),
        "by W": Variant({"reset": "after"}, transition=CAYLEY),
        "a matrix": Variant(transition=DENSE),
        "a list of factors": Variant({"reset": "after"}, transition=KRONECKER),
        "an adjoint": Variant(transition=ADJOINT),
        "a composition": Variant(transition=COMPOSITION),
        "an own operator": Variant(transition=OWN, numpy=False),
    },
)
