"""The two faces behind one interface: NumPy arrays in, NumPy arrays out, so that every law is written once.

A `Subject` is one operator under test. `layout` rewrites the memory of every array on its way in, values unchanged.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

import place
import reference as ref
from registry import Case, members, spread
from tolerance import FLOOR


@dataclass(frozen=True)
class Subject:
    case: Case
    arguments: dict
    layout: str = "plain"
    n: int = field(default=0)
    checks: bool = True  # NumPy face: refuse NaN in methods

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
        one = {}
        for name, a in self.arguments.items():
            lead = self.batch_of(name)
            own = tuple(0 if s == 1 else i for i, s in zip(index[len(index) - len(lead) :], lead, strict=True))
            one[name] = a[own]
        return one

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
                lead = self.batch_of(name)
                own = tuple(0 if s == 1 else i for i, s in zip(index[len(index) - len(lead) :], lead, strict=True))
                total[name][own] += g
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


# ---------------------------------------------------------------- NumPy


def strided(a):
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1] + 3), 9, a.dtype)
    view = wide[..., 1 : 2 * a.shape[-1] + 1 : 2]
    view[...] = a
    return view


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, np.uint8)
    view = raw[1:].view(a.dtype).reshape(a.shape) if a.nbytes else a.copy()
    view[...] = a
    return view


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def offset(a):
    return np.concatenate([np.full((1, *a.shape[1:]), 9, a.dtype), a])[1:]


LAYOUTS = {
    "plain": lambda a: a,
    "fortran": lambda a: np.array(a, order="F"),
    "strided": strided,
    "offset": offset,
    "reversed": lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
    "reversed rows": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "unaligned": unaligned,
    "read-only": read_only,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
}


class NumpySubject(Subject):
    mixes = True  # arguments of several precisions
    layouts = tuple(LAYOUTS)

    @property
    def face(self):
        import isometry

        return isometry

    def home(self, value):
        """An operator, or a result, as an array of NumPy."""
        return np.asarray(value)

    def given(self, a):
        if a is None or np.ndim(a) == 0:
            return a
        return LAYOUTS[self.layout](a)

    def operator(self):
        given = {k: self.given(a) for k, a in self.arguments.items()}
        return self.case.object.build(self.face, {**given, **self.options})

    def matrix(self):
        return self.operator().matrix(check_finite=self.checks)

    def apply(self, x):
        return self.operator().apply(self.given(x), check_finite=self.checks)

    def apply_adjoint(self, y):
        return self.operator().apply_adjoint(self.given(y))

    def times(self, x):
        return self.operator() @ self.given(x)

    def beside(self, x):
        return self.given(x) @ self.operator()

    def picked(self, key):
        op = self.operator()[key]
        return op.matrix(), op.batch_shape

    def converted(self, dtype):
        return self.operator().astype(dtype)

    def apply_vjp(self, x, ct):
        grads, x_bar = self.operator().apply_vjp(self.given(x), self.given(ct), check_finite=self.checks)
        return spread(grads), x_bar

    def matrix_vjp(self, ct):
        return spread(self.operator().matrix_vjp(self.given(ct)))

    def det(self):
        return self.operator().det(check_finite=self.checks)

    def det_vjp(self, ct):
        """None: this face has no gradient of it."""

    def inverse(self):
        return self.operator().inv.matrix()

    def inverse_vjp(self, ct):
        return spread(self.operator().inv.matrix_vjp(self.given(ct)))

    def keywords(self, keywords):
        return {k: self.given(v) if isinstance(v, np.ndarray) else v for k, v in keywords.items()}

    def recurrence(self, x, v, **keywords):
        return self.face.recurrence(self.operator(), self.given(x), self.given(v), **self.keywords(keywords))

    def recurrence_vjp(self, x, v, ct, **keywords):
        op, keywords = self.operator(), self.keywords(keywords)
        x, v = self.given(x), self.given(v)
        states = self.face.recurrence(op, x, v, **keywords)
        grads = self.face.recurrence_vjp(op, x, v, states, self.given(ct), **keywords)
        return {**grads, "transition": spread(grads["transition"])}

    def activate(self, z, name, bias=None):
        return self.face.activate(self.given(z), name, bias=self.given(bias))

    def activate_vjp(self, z, name, ct, bias=None):
        return self.face.activate_vjp(self.given(z), name, self.given(ct), bias=self.given(bias))

    def from_matrix(self, w):
        op = getattr(self.face, self.case.object.cls).from_matrix(self.given(w))
        return {k: a for k in self.case.object.arguments if (a := getattr(op, k)) is not None}


# ---------------------------------------------------------------- torch


def tensor(a):
    import torch

    return torch.from_numpy(np.array(a, order="C")).to(place.device)


def torch_layouts():
    import torch

    def gaps(t):
        wide = torch.full((*t.shape[:-1], 2 * t.shape[-1] + 3), 9, dtype=t.dtype, device=t.device)
        view = wide[..., 1 : 2 * t.shape[-1] + 1 : 2]
        return view.copy_(t)

    def turned(t):
        axes = tuple(reversed(range(t.ndim)))
        return t.permute(axes).contiguous().permute(axes)

    return {
        "plain": lambda t: t,
        "transposed": turned,
        "strided": gaps,
        "offset": lambda t: torch.cat([torch.full_like(t[:1], 9), t])[1:],
        "conjugate bit": lambda t: t.conj().resolve_conj().conj() if t.is_complex() else t,
        "negative bit": lambda t: torch.complex(torch.zeros_like(t), -t).conj().imag if t.is_floating_point() else t,
    }


def array(t):
    return t.detach().resolve_conj().resolve_neg().cpu().numpy()


class TorchSubject(Subject):
    mixes = False
    recorded: ClassVar = False  # whether gradients are computed so that they can be differentiated again
    layouts = ("plain", "transposed", "strided", "offset", "conjugate bit", "negative bit")

    @property
    def face(self):
        import isometry.torch

        return isometry.torch

    def home(self, value):
        import torch

        return array(value) if isinstance(value, torch.Tensor) else np.asarray(value.to("cpu"))

    def given(self, a):
        if a is None:
            return None
        t = tensor(a)
        return torch_layouts()[self.layout](t) if t.ndim else t

    def leaves(self):
        fixed = self.case.object.fixed
        return {k: self.given(a).requires_grad_(k not in fixed) for k, a in self.arguments.items()}

    def operator(self, leaves=None):
        given = leaves or {k: self.given(a) for k, a in self.arguments.items()}
        return self.case.object.build(self.face, {**given, **self.options})

    def matrix(self):
        return self.home(self.operator().matrix())

    def apply(self, x):
        return self.home(self.operator().apply(self.given(x)))

    def apply_adjoint(self, y):
        return self.home(self.operator().apply_adjoint(self.given(y)))

    def times(self, x):
        return self.home(self.operator() @ self.given(x))

    def beside(self, x):
        return self.home(self.given(x) @ self.operator())

    def picked(self, key):
        op = self.operator()[key]
        return self.home(op.matrix()), op.batch_shape

    def converted(self, dtype):
        import torch

        return self.operator().to(getattr(torch, np.dtype(dtype).name))

    def pulled(self, out, inputs, ct):
        import torch

        grads = torch.autograd.grad(out, list(inputs.values()), self.given(ct), create_graph=self.recorded)
        return {k: self.home(g) for k, g in zip(inputs, grads, strict=True)}

    def trainable(self, leaves):
        return {k: t for k, t in leaves.items() if t.requires_grad}

    def apply_vjp(self, x, ct):
        leaves, state = self.leaves(), self.given(x).requires_grad_()
        grads = self.pulled(self.operator(leaves).apply(state), {**self.trainable(leaves), "x": state}, ct)
        return grads, grads.pop("x")

    def matrix_vjp(self, ct):
        leaves = self.leaves()
        return self.pulled(self.operator(leaves).matrix(), self.trainable(leaves), ct)

    def det(self):
        return self.home(self.operator().det())

    def det_vjp(self, ct):
        leaves = self.leaves()
        return self.pulled(self.operator(leaves).det(), self.trainable(leaves), ct)

    def inverse(self):
        return self.home(self.operator().inv.matrix())

    def inverse_vjp(self, ct):
        leaves = self.leaves()
        return self.pulled(self.operator(leaves).inv.matrix(), self.trainable(leaves), ct)

    def keywords(self, keywords, grad=False):
        given = {k: self.given(v) if isinstance(v, np.ndarray) else v for k, v in keywords.items()}
        for k in given:
            if grad and k in ("h0", "bias", "activation_bias", "start_state") and given[k] is not None:
                given[k].requires_grad_()
        return given

    def recurrence(self, x, v, **keywords):
        states = self.face.recurrence(self.operator(), self.given(x), self.given(v), **self.keywords(keywords))
        return self.home(states)

    def recurrence_vjp(self, x, v, ct, **keywords):
        leaves, keywords = self.leaves(), self.keywords(keywords, grad=True)
        x, v = self.given(x).requires_grad_(), self.given(v).requires_grad_()
        states = self.face.recurrence(self.operator(leaves), x, v, **keywords)
        extra = {k: keywords.get(k) for k in ("h0", "bias", "activation_bias", "start_state")}
        inputs = {"x": x, "input_weight": v, **{k: t for k, t in extra.items() if t is not None}}
        mine = self.trainable(leaves)
        grads = self.pulled(states, {**inputs, **{"op " + k: t for k, t in mine.items()}}, ct)
        grads["transition"] = {k: grads.pop("op " + k) for k in mine}
        return {**dict.fromkeys(extra), **grads}

    def activate(self, z, name, bias=None):
        return self.home(self.face.activate(self.given(z), name, bias=self.given(bias)))

    def activate_vjp(self, z, name, ct, bias=None):
        leaves = {"z": self.given(z).requires_grad_()}
        if bias is not None:
            leaves["bias"] = self.given(bias).requires_grad_()
        grads = self.pulled(self.face.activate(leaves["z"], name, bias=leaves.get("bias")), leaves, ct)
        return grads["z"], grads.get("bias")

    def from_matrix(self, w):
        op = getattr(self.face, self.case.object.cls).from_matrix(self.given(w))
        return {k: self.home(a) for k in self.case.object.arguments if (a := getattr(op, k)) is not None}


FACES = {"numpy": NumpySubject, "torch": TorchSubject}
