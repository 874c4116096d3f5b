"""One operator under test in one of the faces, so that every law is written once."""

from dataclasses import dataclass, field, replace

import numpy as np

import reference as ref
from faces import NumpyFace, TorchFace
from fuzz.call import Call
from registry import Case, members
from tolerance import FLOOR


@dataclass(frozen=True)
class Subject:
    """`layout` rewrites the memory of every array on its way in, values unchanged."""

    case: Case
    arguments: dict
    layout: str = "plain"
    n: int = field(default=0)
    checks: bool = True  # NumPy face: refuse NaN

    @classmethod
    def draw(cls, case, rng, n=6, batch=()):
        n = case.size(n)
        return cls(case, case.draw(rng, n, batch), n=n)

    def with_arguments(self, **changes):
        return replace(self, arguments={**self.arguments, **changes})

    def with_layout(self, layout):
        return replace(self, layout=layout)

    def unchecked(self):
        """NaN passes."""
        return replace(self, checks=False)

    # ------------------------------------------------------------ the reference's results

    @property
    def dtype(self):
        return self.case.dtype

    @property
    def factors(self):
        return self.case.factors(self.n)

    @property
    def invertible(self):
        """Whether W^H is known to be the inverse: the loose arguments are signs."""
        own = self.case.object.declaration
        return own.signed and all((np.abs(self.arguments[k]) == 1).all() for k in own.loose if k in self.arguments)

    @property
    def options(self):
        """The keywords that are no arrays of numbers."""
        return self.case.options(self.n)

    def batch_of(self, name):
        shape = self.arguments[name].shape
        return shape[: len(shape) - self.case.object.arguments[name].declared.rank]

    @property
    def batch_shape(self):
        return np.broadcast_shapes(*(self.batch_of(k) for k in self.arguments))

    def member(self, index):
        """The arguments of one operator of the stack."""
        return {name: a[self.at(name, index)] for name, a in self.arguments.items()}

    def at(self, name, index):
        lead = self.batch_of(name)
        return tuple(0 if s == 1 else i for i, s in zip(index[len(index) - len(lead) :], lead, strict=True))

    def reference(self):
        """The stack of matrices, in double precision."""
        one = lambda index: {**self.member(index), **self.options}
        w = [self.case.object.reference(one(i)) for i in members(self.batch_shape)]
        return np.stack(w).reshape(*self.batch_shape, *w[0].shape)

    def reference_matrix_vjp(self, w_bar):
        """Gradients of all trainable arguments, summed over broadcast axes, real if the argument is."""
        total = {k: np.zeros(a.shape, complex) for k, a in self.arguments.items() if k not in self.case.object.fixed}
        for index in members(self.batch_shape):
            grads = self.case.object.gradients(w_bar[index], {**self.member(index), **self.options})
            for name, g in grads.items():
                total[name][self.at(name, index)] += g
        return {k: g if self.arguments[k].dtype.kind == "c" else g.real for k, g in total.items()}

    def reference_apply_vjp(self, x, ct):
        w = self.reference()
        full = (*np.broadcast_shapes(self.batch_shape, x.shape[:-1]),)
        wide_x = np.broadcast_to(x, (*full, x.shape[-1]))
        outer = ref.wide(ct)[..., :, None] * wide_x[..., None, :].conj()
        x_bar = np.einsum("...ij,...i->...j", w.conj(), ref.wide(ct))
        x_bar = fold(x_bar if x.dtype.kind == "c" else x_bar.real, x.shape)
        return self.reference_matrix_vjp(fold(outer, w.shape)), x_bar

    def floor(self, ct):
        return FLOOR * float(np.linalg.norm(ct)) + 1e-3


def fold(a, shape):
    """The sum over broadcast axes that leaves the given shape."""
    a = a.sum(tuple(range(a.ndim - len(shape))))
    return a.sum(tuple(k for k, s in enumerate(shape) if s == 1 and a.shape[k] != 1), keepdims=True)


class NumpySubject(Subject):
    """The results of a package."""

    face = NumpyFace()

    @property
    def package(self):
        return self.face.package

    def given(self, a):
        return None if a is None else self.face.take(a, self.layout)

    def home(self, value):
        return self.face.home(value)

    def operator(self, given=None):
        given = {k: self.given(a) for k, a in self.arguments.items()} if given is None else given
        return self.case.object.build(self.package, {**given, **self.options})

    # ------------------------------------------------------------ calls

    def run(self, function, on="operator", **arrays):
        """The results of a method, or of a function of the operator, by name."""
        held = self.arguments if on == "operator" or "input_weight" in arrays else {}
        arguments = {**held, **arrays, **({} if self.checks else self.face.unchecked)}
        trained = [k for k in arguments if k not in (*self.case.object.fixed, "states", "ct")]
        layouts = dict.fromkeys(set(arguments) - {"states"}, self.layout)
        build = lambda _, given: self.operator(given)
        return self.face.run(
            Call(function, arguments, on=on, held=tuple(held), build=build, wanted=tuple(trained), layouts=layouts)
        )

    def matrix(self):
        return self.run("matrix")["value"]

    def apply(self, x):
        return self.run("apply", x=x)["value"]

    def apply_adjoint(self, x):
        return self.run("apply_adjoint", x=x)["value"]

    def apply_vjp(self, x, ct):
        grads = self.run("apply_vjp", x=x, ct=ct)
        return grads, grads.pop("x")

    def matrix_vjp(self, ct):
        return self.run("matrix_vjp", ct=ct)

    def times(self, x):
        return self.home(self.operator() @ self.given(x))

    def beside(self, x):
        return self.home(self.given(x) @ self.operator())

    def picked(self, key):
        op = self.operator()[key]
        return self.home(op.matrix()), op.batch_shape

    def converted(self, dtype):
        return self.operator().astype(dtype)

    def det(self):
        return self.run("det")["value"]

    def det_vjp(self, ct):
        """None: this face has no gradient of it."""

    def inverse(self):
        return self.run("inv.matrix")["value"]

    def inverse_vjp(self, ct):
        return self.run("inv.matrix_vjp", ct=ct)

    def recurrence(self, x, v, **keywords):
        return self.run("recurrence", "package", x=x, input_weight=v, **keywords)["value"]

    def recurrence_vjp(self, x, v, ct, **keywords):
        given = {"x": x, "input_weight": v, **keywords}
        states = self.run("recurrence", "package", **given)["value"] if self.face.checks else None
        grads = self.run("recurrence_vjp", "package", **given, states=states, ct=ct)
        own = {k.removeprefix("transition."): grads.pop(k) for k in list(grads) if k.startswith("transition.")}
        return {**dict.fromkeys(("h0", "bias", "activation_bias", "start_state")), **grads, "transition": own}

    def activate(self, z, name, bias=None):
        return self.run("activate", "package", z=z, name=name, bias=bias)["value"]

    def activate_vjp(self, z, name, ct, bias=None):
        grads = self.run("activate_vjp", "package", z=z, name=name, ct=ct, bias=bias)
        return grads["z"], grads.get("bias")

    def from_matrix(self, w):
        op = getattr(self.package, self.case.object.cls).from_matrix(self.given(w))
        return {k: self.home(a) for k in self.case.object.arguments if (a := getattr(op, k)) is not None}


class TorchSubject(NumpySubject):
    face = TorchFace()

    def converted(self, dtype):
        import torch

        return self.operator().to(getattr(torch, np.dtype(dtype).name))

    def det_vjp(self, ct):
        return self.run("det_vjp", ct=ct)


IN_FACE = {"numpy": NumpySubject, "torch": TorchSubject}
