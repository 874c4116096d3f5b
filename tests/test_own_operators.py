"""A user's own subclass of `Operator`, by its matrix alone: it does what others do, or says what is missing."""

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import aslinearoperator

import isometry as iso
import isometry.torch as it
import tolerance
from tolerance import close

TIGHT = tolerance.forward(np.float64, 16)


class Own(iso.Operator):
    """By its matrix and its gradient alone."""

    def __init__(self, weight):
        super().__init__(shape=weight.shape[-2:], dtype=weight.dtype, batch_shape=weight.shape[:-2])
        self.weight = weight

    def matrix(self, *, backend=None, check_finite=True):  # noqa: ARG002
        return 2 * self.weight

    def matrix_vjp(self, ct, *, backend=None, check_finite=True):  # noqa: ARG002
        return {"weight": 2 * ct}


class OwnTorch(it.Operator):
    """By its matrix alone."""

    def __init__(self, weight):
        super().__init__(shape=tuple(weight.shape[-2:]), dtype=weight.dtype, batch_shape=tuple(weight.shape[:-2]))
        self.weight = weight

    def matrix(self, *, backend=None, check_finite=True):  # noqa: ARG002
        return 2 * self.weight


OWN = pytest.mark.parametrize(
    "api,array,kind", [(iso, np.asarray, Own), (it, torch.as_tensor, OwnTorch)], ids=["numpy", "torch"]
)


@OWN
def test_own_operators(api, array, kind):
    rng = np.random.default_rng(5)
    weight, x = rng.standard_normal((4, 4)), rng.standard_normal((3, 4))
    own, known = kind(array(weight)), api.Dense(array(2 * weight))
    other = api.Cayley(array(rng.standard_normal(6)))
    for f in (
        lambda op: op(array(x)),
        lambda op: op.apply_adjoint(array(x)),
        lambda op: op @ array(x.T),
        lambda op: array(x) @ op,
        lambda op: op.H(array(x)),
        lambda op: (op @ other).matrix(),
        lambda op: (other @ op.H)(array(x)),
        lambda op: api.recurrence(op, array(rng.standard_normal((5, 2, 3)) * 0 + 1), array(x.T)),
        lambda op: api.recurrence(other @ op, array(np.ones((5, 2, 3))), array(x.T)),
    ):
        close(f(own), np.asarray(f(known)), TIGHT)
    stack = kind(array(rng.standard_normal((2, 3, 4))))
    close(stack(array(x[:, None])), np.asarray(stack.matrix() @ array(x[:, None, :, None]))[..., 0], TIGHT)
    assert len(stack) == 2
    for call in (lambda: stack[0], lambda: list(stack), lambda: stack.H[0]):
        with pytest.raises(TypeError, match=r"does not define __getitem__"):
            call()


def test_own_gradients():
    rng = np.random.default_rng(6)
    weight, x, ct = rng.standard_normal((4, 4)), rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    own, known, other = Own(weight), iso.Dense(2 * weight), iso.Cayley(rng.standard_normal(6))
    for f in (
        lambda op: op.apply_vjp(x, ct)[0],
        lambda op: op.apply_adjoint_vjp(x, ct)[0],
        lambda op: op.H.apply_vjp(x, ct)[0],
        lambda op: (other @ op).apply_vjp(x, ct)[0]["operators"][1],
        lambda op: (op @ other.H).matrix_vjp(weight)["operators"][0],
        lambda op: iso.recurrence_vjp(op, ct[:, None], weight, iso.recurrence(op, ct[:, None], weight), x[:, None])[
            "transition"
        ],
    ):
        close(f(own)["weight"], 2 * f(known)["weight"], tolerance.sequence_gradient(np.float64, 20, 3))
    leaf, found = torch.tensor(weight, requires_grad=True), []
    for op in (OwnTorch(leaf), it.Dense(2 * leaf)):
        out = (
            it.recurrence(op, torch.tensor(ct[:, None]), torch.ones(4, 4).double()).sum()
            + (op.H @ torch.tensor(x.T)).sum()
        )
        assert op.requires_grad and op.device.type == "cpu"
        found.append(torch.autograd.grad(out, leaf)[0])
    close(*found, tolerance.sequence_gradient(np.float64, 20, 3))


@OWN
def test_what_own_operators_do_not_define(api, array, kind):
    del api
    own = kind(array(np.eye(2)))
    conversions = {"astype": (np.float32,)} if kind is Own else {"to": ("cpu",), "detach": ()}
    for op in (own, own.H, own @ own):
        for name, arguments in conversions.items():
            with pytest.raises(TypeError, match=rf"{kind.__name__} does not define {name}\(\)"):
                getattr(op, name)(*arguments)

    class Nothing(type(own).__mro__[1]):
        pass

    for call in (lambda op: op.matrix(), lambda op: op(array(np.ones(2)))):
        with pytest.raises(NotImplementedError, match="Nothing must define matrix"):
            call(Nothing(shape=(2, 2), dtype=own.dtype))
    if kind is Own:
        with pytest.raises(NotImplementedError, match="Nothing defines no matrix_vjp"):
            Nothing(shape=(2, 2), dtype=own.dtype).matrix_vjp(np.eye(2))


@OWN
def test_what_own_operators_say_of_themselves(api, array, kind):
    del kind
    dtype = array(np.ones(1)).dtype
    for wrong, error, name in (
        ({"shape": (2,)}, ValueError, "shape"),
        ({"shape": 2}, TypeError, "shape"),
        ({"shape": (2, 2.0)}, TypeError, "shape"),
        ({"shape": (2, -1)}, ValueError, "shape"),
        ({"batch_shape": 3}, TypeError, "batch_shape"),
        ({"dtype": array(np.ones(1, int)).dtype}, TypeError, "dtype"),
        ({"dtype": "no dtype"}, TypeError, "dtype"),
    ):
        with pytest.raises(error, match=f"^{name} must"):
            api.Operator(**{"shape": (2, 2), "dtype": dtype} | wrong)

    class Smaller(api.Operator):
        def matrix(self, *, backend=None, check_finite=True):  # noqa: ARG002
            return array(np.eye(2))

    with pytest.raises(ValueError, match=r"matrix\(\) must have shape \(3, 3\), not \(2, 2\)"):
        Smaller(shape=(3, 3), dtype=dtype)(array(np.ones(3)))


def test_own_operators_in_text_and_in_scipy():
    assert repr(Own(np.ones((2, 4, 3)))) == "Own(shape=(4, 3), batch_shape=(2,), dtype=float64)"
    linear = aslinearoperator(Own(np.eye(3)))
    close(linear.matvec(np.ones(3)), 2 * np.ones(3), TIGHT)
    close(linear.rmatvec(np.ones((3, 1))), 2 * np.ones((3, 1)), TIGHT)
    assert np.array_equal(np.asarray(Own(np.eye(3))), 2 * np.eye(3))
