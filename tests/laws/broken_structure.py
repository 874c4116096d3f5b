"""Operators that are right on dense random arguments, and wrong where an argument has structure."""

import numpy as np

from laws.broken import Textbook, spoiled
from laws.test_structure import named_zero


def zeros(a):
    """Some entries are exactly zero."""
    return (np.asarray(a) == 0).any()


def copies(a):
    """Some entries are equal, or opposite."""
    sizes = np.abs(np.asarray(a)).ravel()
    return len(np.unique(sizes)) < len(sizes)


class Careful(Textbook):
    """The textbook that refuses directions without a norm."""

    def matrix(self):
        name = named_zero(self)
        if name:
            raise ValueError(f"{name} must not contain a zero vector")
        return super().matrix()


class Where(Careful):
    """Wrong where `found` says so of an argument."""

    found = staticmethod(zeros)

    @property
    def wrong(self):
        return any(self.found(a) for a in self.arguments.values() if np.ndim(a))


class NanWhereZero(Where):
    def matrix(self):
        return spoiled(super().matrix()) if self.wrong else super().matrix()


class LessOrthogonalWhereCopied(Where):
    found = staticmethod(copies)

    def w(self):
        return super().w() * (1.01 if self.wrong else 1)


class ApplyForgetsZeros(Where):
    def apply(self, x):
        out = super().apply(x)
        return np.zeros_like(out) if self.wrong else out


class GradientNanWhereCopied(Where):
    found = staticmethod(copies)

    def gradients(self, grads):
        grads = super().gradients(grads)
        return {k: spoiled(g) for k, g in grads.items()} if self.wrong else grads


class NanSpreads(Careful):
    """One member's NaN reaches its neighbour."""

    def matrix(self):
        out = super().matrix()
        return np.where(np.isnan(out).any((-2, -1), keepdims=True), np.nan, out + 0 * np.roll(out, 1, 0))


class FirstDecides(Careful):
    """Members are computed by the precision that the first one needs."""

    def apply(self, x):
        first, out = next(iter(self.arguments.values())), super().apply(x)
        return self.finish(1.01 * out) if self.batch_shape and zeros(first) else out
