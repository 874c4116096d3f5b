"""A correct operator made of the reference alone, and the wrong ones that the laws must reject."""

import types
from typing import ClassVar

import numpy as np

import reference as ref
from faces import LAYOUTS, Subject
from forms import OfAdjoint, OfBlocks, OfProduct, hermitian, of_matrices


class Textbook(Subject):
    """Satisfies every law. The wrong ones override one of its small methods."""

    layouts = tuple(LAYOUTS)
    budget: ClassVar = [1]

    @property
    def face(self):
        return types.SimpleNamespace(set_num_threads=lambda k: self.budget.__setitem__(0, k))

    def given(self, a):
        return np.array(LAYOUTS[self.layout](a), order="C") if np.ndim(a) else a

    def w(self):
        return self.reference()

    def w_adjoint(self):
        return np.swapaxes(self.w(), -1, -2).conj()

    def finish(self, out):
        """The result as a fresh array of the operator's type."""
        result = np.empty(np.shape(out), self.dtype)
        result[...] = out
        return result

    def gradients(self, grads):
        return {k: g.astype(self.arguments[k].dtype) for k, g in grads.items()}

    def matrix(self):
        return self.finish(self.w())

    def apply(self, x):
        return self.finish(np.einsum("...ij,...j->...i", self.w(), ref.wide(self.given(x))))

    def apply_adjoint(self, y):
        return self.finish(np.einsum("...ij,...j->...i", self.w_adjoint(), ref.wide(self.given(y))))

    def times(self, x):
        return self.finish(self.w() @ ref.wide(self.given(x)))

    def beside(self, x):
        return self.finish(ref.wide(self.given(x)) @ self.w())

    def picked(self, key):
        w = self.w()[of_matrices(key)]
        return self.finish(w), w.shape[:-2]

    def apply_vjp(self, x, ct):
        grads, x_bar = self.reference_apply_vjp(self.given(x), self.given(ct))
        return self.gradients(grads), self.finish(x_bar)

    def matrix_vjp(self, ct):
        return self.gradients(self.reference_matrix_vjp(self.given(ct)))

    def det(self):
        det = np.linalg.det(self.w())
        return self.finish(np.sign(det) if self.invertible and not np.iscomplexobj(det) else det)

    def det_vjp(self, ct):
        w_bar = np.asarray(ct)[..., None, None] * ref.cofactors(self.w()).conj()
        return self.gradients(self.reference_matrix_vjp(w_bar))

    def inverse(self):
        if not self.invertible:
            raise ValueError("inv needs another operator")
        return self.finish(self.w_adjoint())

    def inverse_vjp(self, ct):
        return self.gradients(self.reference_matrix_vjp(hermitian(self.given(ct))))

    def layer(self, *arrays, **keywords):
        return *map(self.given, arrays), {
            k: self.given(a) if isinstance(a, np.ndarray) else a for k, a in keywords.items()
        }

    def recurrence(self, x, v, **keywords):
        x, v, keywords = self.layer(x, v, **keywords)
        return self.finish(ref.recurrence(self.w(), x, v, **keywords))

    def recurrence_vjp(self, x, v, ct, **keywords):
        x, v, ct, keywords = self.layer(x, v, ct, **keywords)
        grads = ref.recurrence_vjp(self.w(), x, v, ct, **keywords)
        grads["x"] = self.finish(grads["x"])
        grads |= dict.fromkeys(k for k in ("h0", "bias", "start_state") if keywords.get(k) is None)
        grads["transition"] = self.gradients(self.reference_matrix_vjp(grads.pop("w")))
        return grads

    def activate(self, z, name, bias=None):
        return self.finish(ref.activate(self.given(z), name, self.given(bias)))

    def activate_vjp(self, z, name, ct, bias=None):
        z_bar, bias_bar = ref.activate_vjp(self.given(z), name, self.given(ct), self.given(bias))
        return self.finish(z_bar), bias_bar

    def from_matrix(self, w):
        """A sufficient substitute for an inverse in laws that only compare bits."""
        return {"weight": self.finish(self.given(w))}


def on_results(change):
    """A Textbook whose results pass through `change`."""

    class Broken(Textbook):
        def finish(self, out):
            return change(super().finish(out))

    return Broken


def on_gradients(change):
    """A Textbook whose parameter gradients pass through `change`."""

    class Broken(Textbook):
        def gradients(self, grads):
            return {k: change(g) for k, g in super().gradients(grads).items()}

    return Broken


def spoiled(a):
    a = np.array(a)
    a.reshape(-1)[-1] = np.nan
    return a


Scaled = on_results(lambda out: out * out.dtype.type(1.001))
NanInOneCell = on_results(spoiled)
ZeroGradient = on_gradients(np.zeros_like)
UnconjugatedGradient = on_gradients(np.conj)
ScaledGradient = on_gradients(lambda g: g * g.dtype.type(1.001))
NanGradient = on_gradients(spoiled)


class Transposed(Textbook):
    def w(self):
        return np.swapaxes(self.reference(), -1, -2)


class Unconjugated(Textbook):
    def w(self):
        return self.reference().conj()


class AdjointUnconjugated(Textbook):
    def w_adjoint(self):
        return np.swapaxes(self.w(), -1, -2)


class AdjointNotTransposed(Textbook):
    def w_adjoint(self):
        return self.w().conj()


class BatchIndexIgnored(Textbook):
    def w(self):
        w = self.reference()
        return np.broadcast_to(w[(0,) * len(self.batch_shape)], w.shape)


class RowsNotSummed(Textbook):
    """Counts only the first row of a batch in the parameters' gradients."""

    def apply_vjp(self, x, ct):
        only = np.zeros_like(ct)
        only[:1] = ct[:1]
        return super().apply_vjp(x, only)[0], super().apply_vjp(x, ct)[1]


class StridesIgnored(Textbook):
    """Reads the memory of an array as if it were contiguous."""

    def given(self, a):
        if np.ndim(a) == 0:
            return a
        a = LAYOUTS[self.layout](a)
        return a.ravel(order="K").reshape(a.shape)


class ArgumentModified(Textbook):
    def apply(self, x):
        out = super().apply(x)
        x *= 2
        return out


class ArgumentReturned(Textbook):
    def apply(self, x):
        return x


class CellUnwritten(Textbook):
    def finish(self, out):
        result = np.empty(np.shape(out), self.dtype)
        result.reshape(-1)[:-1] = np.reshape(out, -1)[:-1]
        return result


def only(wrong, call):
    """A Textbook that is wrong in one call."""

    def broken(self, *args, **keywords):
        return getattr(Textbook, call)(wrong(self.case, self.arguments, self.layout, self.n), *args, **keywords)

    return type(f"{wrong.__name__}In_{call}", (Textbook,), {call: broken})


OTHERS = ("recurrence", "recurrence_vjp", "activate", "activate_vjp", "from_matrix")
STRIDES_IGNORED = tuple(only(StridesIgnored, call) for call in OTHERS)
CELL_UNWRITTEN = tuple(only(CellUnwritten, call) for call in OTHERS)


class DependsOnThreads(Textbook):
    def finish(self, out):
        return super().finish(out * (1 + 4 * self.budget[0] * np.finfo(self.dtype).eps))


class InitialStateIgnored(Textbook):
    def recurrence(self, x, v, **keywords):
        return super().recurrence(x, v, **{**keywords, "h0": None})


class LastStepSkipped(Textbook):
    def recurrence(self, x, v, **keywords):
        states = super().recurrence(x, v, **keywords)
        states[-1] = states[-2] if len(states) > 1 else states[-1]
        return states


class SequencesMixed(Textbook):
    def recurrence(self, x, v, **keywords):
        return super().recurrence(x, v, **keywords)[:, ::-1].copy()


class StateGradientZero(Textbook):
    def recurrence_vjp(self, x, v, ct, **keywords):
        grads = super().recurrence_vjp(x, v, ct, **keywords)
        return {**grads, "h0": np.zeros_like(grads["h0"])}


class DeterminantWithoutSign(Textbook):
    def det(self):
        return self.finish(np.abs(np.linalg.det(self.w())))


class DeterminantOfRounding(Textbook):
    """Of elimination, where the class fixes it."""

    def det(self):
        return super().det() * (1 - np.finfo(self.dtype).eps)


class InverseOfAnything(Textbook):
    def inverse(self):
        return self.finish(self.w_adjoint())


# ---------------------------------------------------------------- expressions


class AdjointForgetsToConjugate(OfAdjoint, Textbook):
    def w(self):
        return super().w().conj()


class AdjointForgetsToTranspose(OfAdjoint, Textbook):
    def w(self):
        return np.swapaxes(super().w(), -1, -2)


class AdjointGradientOfTheOriginal(OfAdjoint, Textbook):
    """Pulls the cotangent back as it is."""

    def matrix_vjp(self, ct):
        return self.gradients(super().reference_matrix_vjp(hermitian(self.given(ct))))


class ProductInWrongOrder(OfProduct, Textbook):
    """W^H R W."""

    def w(self):
        w = Subject.reference(self)
        return hermitian(w) @ self.middle() @ w


class ProductForgetsAGradient(OfProduct, Textbook):
    """That of the factor that stands twice, where it stands last."""

    def matrix_vjp(self, ct):
        first = self.given(ct) @ Subject.reference(self) @ hermitian(self.middle())
        return self.gradients(Subject.reference_matrix_vjp(self, first))


class BlocksInTheOtherOrder(OfBlocks, Textbook):
    def w(self):
        w = self.reference()
        return np.roll(w, (w.shape[-2] // 2, w.shape[-1] // 2), (-2, -1))


class BlocksMeet(OfBlocks, Textbook):
    """One number outside of the blocks."""

    def w(self):
        w = self.reference()
        w[..., 0, -1] += 1
        return w


class BlocksOfOneGradient(OfBlocks, Textbook):
    """Both members have the gradient of the first."""

    def matrix_vjp(self, ct):
        ct, (p, q) = self.given(ct).copy(), (size // 2 for size in ct.shape[-2:])
        ct[..., p:, q:] = ct[..., :p, :q]
        return self.gradients(self.reference_matrix_vjp(ct))


class ColumnsTakenForRows(Textbook):
    def times(self, x):
        return super().times(np.swapaxes(x, -1, -2) if x.ndim > 1 and x.shape[-1] == x.shape[-2] else x)


class RightProductWithTheAdjoint(Textbook):
    def beside(self, x):
        return self.finish(ref.wide(self.given(x)) @ self.w().conj())


class IndexedAlongTheLastAxis(Textbook):
    def picked(self, key):
        w = np.moveaxis(self.w(), len(self.batch_shape) - 1, 0)[of_matrices(key)]
        return self.finish(w), w.shape[:-2]


class FirstOfAStack(Textbook):
    """Every member is the first."""

    def picked(self, key):
        w = self.w()
        w = np.broadcast_to(w[(0,) * len(self.batch_shape)], w.shape)[of_matrices(key)]
        return self.finish(w), w.shape[:-2]
