"""Subjects of the real package with one fault each, which the laws must reject."""

import numpy as np

from faces import NumpyFace
from forms import of_matrices
from subjects import NumpySubject, TorchSubject
from support.broken import broken, first_row, on_results

RESULTS = ("matrix", "apply", "apply_adjoint", "apply_vjp", "det", "inverse", "recurrence", "activate", "activate_vjp")
GRADIENTS = ("apply_vjp", "matrix_vjp", "det_vjp", "inverse_vjp", "recurrence_vjp")


def results(change, *names):
    """Results pass through `change`."""
    return broken(NumpySubject, on_results(change, gradients=False), *(names or RESULTS))


def gradients(change):
    """Gradients of the parameters pass through `change`."""
    return broken(TorchSubject, on_results(change, arrays=False), *GRADIENTS)


def operator(change, subject=NumpySubject):
    """Another operator."""
    return broken(subject, on_results(change), "operator")


def spoiled(a):
    a = np.array(a)
    a.reshape(-1)[-1] = np.nan
    return a


def scaled(a):
    return a * a.dtype.type(1.001)


def unwritten(a):
    result = np.empty(np.shape(a), np.asarray(a).dtype)
    result.reshape(-1)[:-1] = np.reshape(a, -1)[:-1]
    return result


Scaled, NanInOneCell, CellUnwritten = map(results, (scaled, spoiled, unwritten))
ZeroGradient, UnconjugatedGradient, ScaledGradient, NanGradient = map(
    gradients, (np.zeros_like, np.conj, scaled, spoiled)
)


def conjugated(function):
    """The operator of conjugate arguments, which is that of the conjugate matrix."""

    def wrong(self, given=None):
        given = {k: self.given(a) for k, a in self.arguments.items()} if given is None else given
        turned = lambda k: self.case.object.arguments[k].declared.angles
        return function(self, {k: -a if turned(k) else a.conj() for k, a in given.items()})

    return wrong


conjugate = conjugated(NumpySubject.operator)
transposed = lambda function: on_results(lambda op: op.H)(conjugated(function))
Transposed, Unconjugated = (broken(NumpySubject, fault, "operator") for fault in (transposed, conjugated))
BatchIndexIgnored = operator(
    lambda op: op[(np.zeros(op.batch_shape, int),) * len(op.batch_shape)] if len(op.batch_shape) else op
)


def adjoint(change):
    """What is taken for W^H."""

    def wrong(self, *rows):
        op = change(self)
        return self.home(op.apply(self.given(rows[0])) if rows else op.matrix())

    return broken(NumpySubject, lambda _: wrong, "apply_adjoint", "inverse")


AdjointUnconjugated, AdjointNotTransposed = adjoint(lambda self: conjugate(self).H), adjoint(conjugate)


def overwrites(function):
    def wrong(self, x):
        out = function(self, x)
        x *= 2
        return out

    return wrong


def contiguous(function):
    """Reads the memory of an array as if it were contiguous."""
    return lambda *given: a.ravel(order="K").reshape(a.shape) if np.ndim(a := function(*given)) else a


def threads_seen(function):
    def wrong(self, *arrays):
        out = function(self, *arrays)
        return out * (1 + 4 * self.package.get_num_threads() * np.finfo(out.dtype).eps)

    return wrong


RowsNotSummed = broken(NumpySubject, first_row, "apply_vjp")
ArgumentModified = broken(NumpySubject, overwrites, "apply")
ArgumentReturned = broken(NumpySubject, lambda _: lambda *given: given[-1], "apply")
StridesIgnored = type("StridesIgnored", (NumpySubject,), {"face": broken(NumpyFace, contiguous, "take")()})
DependsOnThreads = broken(NumpySubject, threads_seen, "matrix", "apply")


# ---------------------------------------------------------------- recurrences


def keywords(change):
    return lambda function: lambda self, *arrays, **given: function(self, *arrays, **change(given))


InitialStateIgnored = broken(NumpySubject, keywords(lambda given: {**given, "h0": None}), "recurrence")
SequencesMixed = results(lambda states: states[:, ::-1].copy(), "recurrence")
StateGradientZero = broken(
    NumpySubject,
    lambda function: lambda *given, **more: (g := function(*given, **more)) | {"h0": np.zeros_like(g["h0"])},
    "recurrence_vjp",
)

# ---------------------------------------------------------------- determinants

DeterminantWithoutSign = results(np.abs, "det")
DeterminantOfRounding = results(lambda det: det * (1 - np.finfo(det.dtype).eps), "det")  # where the class fixes it
InverseOfAnything = broken(NumpySubject, lambda _: lambda self: self.home(self.operator().H.matrix()), "inverse")

# ---------------------------------------------------------------- expressions

ColumnsTakenForRows = broken(NumpySubject, lambda function: lambda self, x: function(self, turned(x)), "times")
RightProductWithTheAdjoint = broken(
    NumpySubject, lambda _: lambda self, x: self.home(self.given(x) @ conjugate(self)), "beside"
)


def turned(x):
    return np.swapaxes(x, -1, -2) if x.ndim > 1 and x.shape[-1] == x.shape[-2] else x


def picked(change):
    """Members of another stack of matrices."""

    def wrong(self, key):
        w = change(self.matrix(), len(self.batch_shape))[of_matrices(key)]
        return w, w.shape[:-2]

    return broken(NumpySubject, lambda _: wrong, "picked")


IndexedAlongTheLastAxis = picked(lambda w, rank: np.moveaxis(w, rank - 1, 0))
FirstOfAStack = picked(lambda w, rank: np.broadcast_to(w[(0,) * rank], w.shape))


# ---------------------------------------------------------------- right on dense random arguments alone


def zeros(a):
    """Some entries are exactly zero."""
    return (np.asarray(a) == 0).any()


def copies(a):
    """Some entries are equal, or opposite."""
    sizes = np.abs(np.asarray(a)).ravel()
    return len(np.unique(sizes)) < len(sizes)


def where(found, *names, **kinds):
    """Results have a NaN where `found` says so of an argument."""

    def fault(function):
        def wrong(self, *arrays):
            holds = any(found(a) for a in self.arguments.values() if np.ndim(a))
            return (on_results(spoiled, **kinds)(function) if holds else function)(self, *arrays)

        return wrong

    return broken(NumpySubject, fault, *names)


NanWhereZero = where(zeros, "matrix")
GradientNanWhereCopied = where(copies, *GRADIENTS, arrays=False)
#: One member's NaN reaches its neighbour.
NanSpreads = broken(
    NumpySubject,
    on_results(lambda w: np.where(np.isnan(w).any((-2, -1), keepdims=True), np.nan, w + 0 * np.roll(w, 1, 0))),
    "matrix",
)
