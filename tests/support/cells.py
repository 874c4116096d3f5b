"""The functions of a cell in both faces behind one interface: arrays by name in, arrays out."""

import numpy as np
import pytest
import torch

from elsewhere import ElsewhereFace
from faces import NumpyFace, TorchFace
from registry.cells import CASES


def flat(grads):
    """The gradients of a transition's arguments, in their order."""
    if isinstance(grads, dict | list | tuple):
        for own in grads.values() if isinstance(grads, dict) else grads:
            yield from flat(own)
    elif grads is not None:
        yield grads


class Cell:
    def __init__(self, case, face=None):
        self.case, self.face = case, face or self.face
        self.package, self.take, self.home = self.face.package, self.face.take, self.face.home

    def run(self, given, **options):
        return self.case.call(self.package, given, **options)


class TorchCell(Cell):
    """Everything follows from `run`, the results as a function of tensors."""

    face = TorchFace()

    def function(self, arrays, **options):
        """The results as a function of tensors, and the point."""
        return lambda *at: self.run(dict(zip(arrays, at, strict=True)), **options), [
            self.take(a) for a in arrays.values()
        ]

    def states(self, arrays, **options):
        with torch.no_grad():
            return self.home(self.run({name: self.take(a) for name, a in arrays.items()}, **options))

    def vjp(self, arrays, ct, **options):
        """The gradients by name, zero where there is none."""
        leaves = {name: self.take(a).requires_grad_() for name, a in arrays.items()}
        out, unused = self.run(leaves, **options), {"allow_unused": True, "materialize_grads": True}
        grads = torch.autograd.grad(out, list(leaves.values()), self.take(ct), **unused)
        return dict(zip(leaves, map(self.home, grads), strict=True))


class ElsewhereCell(TorchCell):
    """On a device without kernels; used while one is entered."""

    face = ElsewhereFace()


class NumpyCell(Cell):
    face = NumpyFace()
    states = Cell.run

    def parts(self, states):
        """The parts of a state, or of its cotangent, as the functions have them."""
        count = len(self.case.cell.first)
        return states if count == 1 else tuple(map(np.ascontiguousarray, np.split(states, count, -1)))

    def pull(self, arrays, states, ct, **options):
        """What the function of the gradients gives."""
        lead, given = self.case.given(arrays, self.package)
        return getattr(self.package, f"{self.case.cell.stem}_vjp")(*lead, states=states, ct=ct, **given, **options)

    def vjp(self, arrays, ct, **options):
        lead, given = self.case.given(arrays, self.package)
        results = getattr(self.package, self.case.cell.stem)(*lead, **given, **options)
        grads = self.pull(arrays, results, self.parts(ct), **options)
        own = dict(zip(self.case.own, flat(grads.pop("transition", ())), strict=True))
        for name, g in grads.items():
            if name in arrays:
                own[name] = np.zeros_like(arrays[name]) if g is None else joined(g)
        return {name: own[name] for name in arrays}


def joined(g):
    """A gradient, or those of both parts of a state."""
    return np.concatenate(g, -1) if isinstance(g, tuple) else g


#: Every variant through both faces; a memory is an array of its own in NumPy (tests/test_recurrence.py).
SUBJECTS = [*map(TorchCell, CASES), *(NumpyCell(c) for c in CASES if c.kind.numpy and not c.memory)]


def named(subject):
    return f"{subject.face.name}, {subject.case}"


each_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=named)
