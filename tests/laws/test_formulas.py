"""The formulas of isometry.torch.reference agree with the kernels: values, and gradients in reverse mode.

They are used for tensors on other devices, and on the CPU for gradients that are themselves differentiated.
"""

import pytest

import reference as ref
from elsewhere import Elsewhere, ElsewhereSubject
from faces import TorchFace
from laws.test_layouts import without_rows
from subjects import TorchSubject
from tolerance import close, gradient


class RecordedSubject(TorchSubject):
    """Values of the kernels, gradients of the formulas."""

    face = TorchFace(recorded=True)


def agree(kernel, formula, rng):
    """Every call of the operator."""
    n_out, n_in = kernel.reference().shape[-2:]
    lead = kernel.batch_shape
    x, ct = (ref.normal(rng, 3, *lead, k, dtype=kernel.dtype) for k in (n_in, n_out))
    w_bar = ref.normal(rng, *lead, n_out, n_in, dtype=kernel.dtype)
    tolerance, floor = gradient(kernel.dtype, kernel.factors), kernel.floor(ct)
    close(formula.matrix(), kernel.matrix(), tolerance, "matrix")
    close(formula.apply(x), kernel.apply(x), tolerance, "apply")
    close(formula.apply_adjoint(ct), kernel.apply_adjoint(ct), tolerance, "apply_adjoint")
    (found, found_x), (expected, expected_x) = formula.apply_vjp(x, ct), kernel.apply_vjp(x, ct)
    close(found_x, expected_x, tolerance, "x_bar")
    same(found, expected, tolerance, floor)
    same(formula.matrix_vjp(w_bar), kernel.matrix_vjp(w_bar), tolerance, kernel.floor(w_bar))


def same(found, expected, tolerance, floor):
    assert set(found) == set(expected)
    for name, g in expected.items():
        close(found[name], g, tolerance, f"gradient of {name}", floor)


@pytest.fixture(params=["elsewhere", "recorded"])
def formula(request):
    """The kind of subject that uses the formulas."""
    if request.param == "recorded":
        yield RecordedSubject
        return
    with Elsewhere() as device:
        yield ElsewhereSubject
    assert not device.fetched


def drawn(case, formula, rng, n, batch=()):
    kernel = TorchSubject.draw(case, rng, n, batch)
    return kernel, formula(case, kernel.arguments, n=kernel.n), rng


def test_formulas(case, formula, seed):
    for n, batch in ((5, ()), (20, ()), (4, (3,))):
        agree(*drawn(case, formula, seed, n, batch))


def test_formulas_without_rows(case, formula, seed):
    _, subject, _ = drawn(case, formula, seed, 4)
    for lead in ((0,), (2, 0)):
        without_rows(subject, lead)
