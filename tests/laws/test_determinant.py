"""det() is the determinant of every member, inv the inverse where that is W^H; both with their gradients."""

import numpy as np
import pytest

import reference as ref
from forms import SQUARE, formed
from laws.test_expressions import refused
from laws.test_operators import agree
from registry import is_complex
from tolerance import close, gradient

# ---------------------------------------------------------------- laws


def determinant(subject, rng):
    """det, whose gradient in W is the matrix of cofactors."""
    w = subject.reference()
    bound = gradient(subject.dtype, subject.factors)
    found = subject.det()
    assert np.asarray(found).dtype == subject.dtype
    close(found, np.linalg.det(w), bound, "det", floor=1.0)
    if subject.invertible and not is_complex(subject.dtype):
        assert (np.abs(found) == 1).all()
    ct = np.asarray(ref.normal(rng, *subject.batch_shape, dtype=subject.dtype))
    w_bar = ct[..., None, None] * ref.cofactors(w).conj()
    grads = subject.det_vjp(ct)
    if grads is not None:
        floor = max(1.0, float(np.linalg.norm(w_bar)))
        agree(subject, grads, subject.reference_matrix_vjp(w_bar), bound, floor)


def inverse(subject, rng):
    """inv where W^H is the inverse by the class and its signs, with the gradient of the inverse; else a ValueError."""
    if not subject.invertible:
        assert refused(subject.inverse).startswith("inv needs")
        return
    w = subject.reference()
    bound, found = gradient(subject.dtype, subject.factors), np.linalg.inv(w)
    close(subject.inverse(), found, bound, "inv")
    ct = ref.normal(rng, *w.shape, dtype=subject.dtype)
    back = np.swapaxes(found, -1, -2).conj()
    expected = subject.reference_matrix_vjp(-back @ ct @ back)
    # a sign leaves +-1, where W^H is no inverse
    for grads in (found := subject.inverse_vjp(ct)), expected:
        for name in subject.case.object.declaration.loose:
            grads.pop(name, None)
    agree(subject, found, expected, bound, max(1.0, subject.floor(ct)))


def singular(subject, rng):
    """A product through a narrower space, whose determinant is 0 without rounding."""
    del rng
    op = subject.operator().columns(1)
    det = (op @ op.H).det()
    assert tuple(det.shape) == subject.batch_shape and (subject.home(det) == 0).all()


# ---------------------------------------------------------------- what obeys them


def test_determinant(make, seed):
    for n, batch in ((1, ()), (2, ()), (3, ()), (4, (3,)), (5, (2, 1)), (8, ()), (13, ())):
        subject = make(n, batch)
        if subject.reference().shape[-1] == subject.reference().shape[-2]:
            determinant(subject, seed)
            if n > 1:
                singular(subject, seed)


test_determinant.select = lambda case: case.square


def test_inverse(make, seed):
    for n, batch in ((1, ()), (2, ()), (4, (3,)), (5, (2, 1)), (8, ())):
        inverse(make(n, batch), seed)


test_inverse.select = lambda case: case.square


@pytest.mark.parametrize("form", SQUARE)
def test_forms(form, face, case, seed):
    for n, batch in ((3, ()), (4, (2,))):
        subject = formed(form, face).draw(case, seed, n, batch)
        determinant(subject, seed)
        inverse(subject, seed)


test_forms.select = lambda case: case.square


def test_arguments_that_broadcast(make, seed):
    """Every argument in turn is that of one member."""
    whole = make(3, (2,))
    for name, a in whole.arguments.items():
        determinant(whole.with_arguments(**{name: a[0]}), seed)


test_arguments_that_broadcast.select = lambda case: case.square


def test_rectangular(make):
    with pytest.raises(ValueError, match="^det needs a square matrix"):
        make(3).det()
    with pytest.raises(ValueError, match="^inv needs a square matrix"):
        make(3).inverse()


test_rectangular.select = lambda case: not case.square
