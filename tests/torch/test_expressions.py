"""Operators in expressions in every mode of torch: derivatives of second order, vmap, compiled, on another device."""

import numpy as np
import pytest
import torch

import isometry.torch as it
from derivatives import compiled, draw, every_member, every_order, gradients, of_operator, same
from elsewhere import Elsewhere, ElsewhereSubject
from forms import FORMS
from laws.test_devices import unseen
from registry import CASES, Case

CASE = [Case(stem, variant, dtype) for stem, variant, dtype in (
    ("householder", "plain", np.float64), ("householder", "phases", np.complex128),
    ("cayley", "signs", np.float64), ("cayley", "diagonal, phases", np.complex128), ("dense", "square", np.complex128),
)]  # fmt: skip
assert set(CASE) <= set(CASES)

#: What is computed with an operator, another one and x, a matrix of three rows.
EXPRESSIONS = {
    "call": lambda op, _, x: op(x),
    "columns": lambda op, _, x: op @ x.mT,
    "rows": lambda op, _, x: x @ op,
    "adjoint": lambda op, _, x: op.H(x),
    "rows of an adjoint": lambda op, _, x: x @ op.H,
    "matrix of a product": lambda op, other, x: (op.H @ other @ op).matrix() @ x.mT,
    "product": lambda op, other, x: (other.H @ op)(x),
    "columns of an operator": lambda op, _, x: op.columns(3)(x[:, :3]) + x @ op.columns(4).matrix(),
    "rows of columns": lambda op, _, x: x @ op.columns(3),
    "adjoint of a product": lambda op, other, x: x @ (op @ other).H,
    "precision": lambda op, _, x: op.to(torch.complex128)(x),
    "recurrence": lambda op, other, x: it.recurrence(op.H @ other, x[:, None], 0.3 * x[:1].mT.expand(-1, 4)),
}
COMPILED = ("call", "adjoint", "columns of an operator", "matrix of a product", "product", "precision", "recurrence")


def problem(case, expression, rng):
    """The expression as a function of the operator's arguments and of x, and a point to differentiate at."""
    other = it.Cayley(draw(rng, 6, dtype=case.dtype))
    return of_operator(case, rng, lambda op, x: EXPRESSIONS[expression](op, other, x), 3)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("operator", CASE[:4:3], ids=str)
def test_every_order(operator, expression, seed):
    every_order(*problem(operator, expression, seed))


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("operator", [CASE[1], CASE[4]], ids=str)
def test_every_member(operator, expression, seed):
    every_member(*problem(operator, expression, seed))


@pytest.mark.parametrize("expression", COMPILED)
@pytest.mark.parametrize("operator", CASE, ids=str)
def test_compiled(operator, expression, seed):
    f, at = problem(operator, expression, seed)
    torch.compiler.reset()
    same(gradients(torch.compile(f, fullgraph=True, backend="aot_eager"), at), gradients(f, at))


TWICE = {
    "kronecker": (lambda a, x: it.Kronecker([a, a])(x), [(2, 2), (3, 4)]),
    "rotation": (lambda v: it.Rotation(v, v)(v), [(4,)]),
    "dense": (lambda w: it.Dense(w)(w), [(4, 4)]),
    "matrix": (lambda u, p: it.BoundedSvd(u, p, u, margin=0.1).matrix(), [(4, 4), (4,)]),
    "recurrence": (
        lambda a, x, v, b: it.recurrence(it.Cayley(a), x, v, bias=b, activation_bias=b, activation="modrelu"),
        [(6,), (5, 2, 3), (4, 3), (4,)],
    ),
    "gru": (lambda x, w: it.gru(x, w, w, None), [(5, 2, 4), (3, 4, 4)]),
}


@pytest.mark.parametrize("call", TWICE)
def test_compiled_with_a_tensor_in_two_places(call, seed):
    f, shapes = TWICE[call]
    at = [draw(seed, *shape) for shape in shapes]
    same(gradients(compiled(f), at), gradients(f, at))


def test_compiled_stacks(seed):
    u, x = draw(seed, 3, 4, 2), draw(seed, 5, 4)

    def f(u, x):
        stack = it.Householder(u)
        return [op(x) for op in stack], stack[1:](x[:2]), len(stack) * stack[..., None, ::2](x[:2])

    torch.compiler.reset()
    for a, b in zip(torch.compile(f, fullgraph=True, backend="aot_eager")(u, x), f(u, x), strict=True):
        same(a, b)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operator", CASE, ids=str)
def test_no_value_is_looked_at_elsewhere(operator, form, seed):
    with Elsewhere() as device:
        unseen(type(form, (FORMS[form], ElsewhereSubject), {}).draw(operator, seed, 4, (2,)), seed, device)


def test_results_are_plain_tensors(seed):
    """Dense and without the conjugate bit."""
    op, x = it.Cayley(draw(seed, 6, dtype=np.complex128)), draw(seed, 3, 4, dtype=np.complex128)
    for out in (op(x), op @ x.mT, x @ op, x[0] @ op, op.H(x), op.H.matrix(), (op @ op.H).matrix(), x @ op.H):
        assert not out.is_conj() and out.numpy().shape == out.shape
    assert isinstance(torch.nn.Parameter(x) @ op, torch.Tensor)


def test_an_initial_state_that_is_no_tensor():
    layer, x, h = it.nn.ORNN(2, 4), torch.zeros(5, 3, 2), torch.zeros(1, 3, 4)
    packed = torch.nn.utils.rnn.pack_sequence([torch.zeros(5, 2)] * 3)
    for given in (x, packed):
        for wrong in ([h], (h,), (h, h), h.numpy(), {"hx": h}):
            with pytest.raises(TypeError, match=f"hx must be a torch.Tensor, .* stacked, not {type(wrong).__name__}"):
                layer(given, wrong)
            with pytest.raises(TypeError, match="hx must be a torch.Tensor"):
                layer(given, hx=wrong)
        layer(given, h)
    for wrong in ([x], x.numpy(), None):
        with pytest.raises(TypeError, match="input must be a torch.Tensor or a PackedSequence, not"):
            layer(wrong)
    with pytest.raises(TypeError, match="h0 must be a torch.Tensor, not list"):
        it.recurrence(it.Cayley(torch.ones(6)), x, torch.ones(4, 2), h0=[h])


def test_conversions_by_torchs_names(seed):
    """Each is `to`; a complex operator does not become real."""
    op = it.Cayley(draw(seed, 3))
    names = {"float": torch.float32, "double": torch.float64, "cfloat": torch.complex64, "cdouble": torch.complex128}
    for name, dtype in names.items():
        for one in (op, op.H, op.columns(2), op @ op):
            found = getattr(one, name)()
            assert type(found) is type(one) and found.dtype is dtype
            assert torch.equal(found.matrix(), one.to(dtype).matrix())
    assert op.cpu() is op.double() is op
    for name in ("float", "double"):
        with pytest.raises(TypeError, match="complex"):
            getattr(op.cfloat(), name)()
    if torch.cuda.is_available():
        assert op.cuda().device.type == "cuda" and op.cuda().cpu().device.type == "cpu"
        assert op.cuda(0).device == torch.device("cuda", 0)
    else:
        with pytest.raises((RuntimeError, AssertionError)):
            op.cuda()


def test_conversions_of_an_operator_of_ones_own():
    class Own(it.Operator):
        def matrix(self, **_):
            return torch.eye(self.shape[0])

    with pytest.raises(TypeError, match="Own"):
        Own(shape=(2, 2), dtype=torch.float32).double()
