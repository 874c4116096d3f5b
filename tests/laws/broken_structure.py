"""Operators that are right on dense random arguments, and wrong where an argument has structure."""

import numpy as np

from laws.broken import GRADIENTS, spoiled
from subjects import NumpySubject
from support.broken import broken, on_results


def zeros(a):
    """Some entries are exactly zero."""
    return (np.asarray(a) == 0).any()


def copies(a):
    """Some entries are equal, or opposite."""
    sizes = np.abs(np.asarray(a)).ravel()
    return len(np.unique(sizes)) < len(sizes)


def where(found, change, *names, **kinds):
    """Results pass through `change` where `found` says so of an argument."""

    def fault(function):
        def wrong(self, *arrays):
            holds = any(found(a) for a in self.arguments.values() if np.ndim(a))
            return (on_results(change, **kinds)(function) if holds else function)(self, *arrays)

        return wrong

    return broken(NumpySubject, fault, *names)


NanWhereZero = where(zeros, spoiled, "matrix")
LessOrthogonalWhereCopied = where(copies, lambda w: w * w.dtype.type(1.01), "matrix", "apply", "apply_adjoint")
ApplyForgetsZeros = where(zeros, np.zeros_like, "apply")
GradientNanWhereCopied = where(copies, spoiled, *GRADIENTS, arrays=False)
#: One member's NaN reaches its neighbour.
NanSpreads = broken(
    NumpySubject,
    on_results(lambda w: np.where(np.isnan(w).any((-2, -1), keepdims=True), np.nan, w + 0 * np.roll(w, 1, 0))),
    "matrix",
)


def first_decides(function):
    """Members are computed by the precision that the first one needs."""

    def wrong(self, x):
        first, out = next(iter(self.arguments.values())), function(self, x)
        return (1.01 * out).astype(out.dtype) if self.batch_shape and zeros(first) else out

    return wrong


FirstDecides = broken(NumpySubject, first_decides, "apply")
