"""The formulas of isometry.torch.reference agree with the kernels: values, and gradients in reverse mode.

They are used for tensors on other devices, and on the CPU for gradients that are themselves differentiated.
"""

import numpy as np
import pytest

import reference as ref
from elsewhere import Elsewhere, ElsewhereSubject
from faces import TorchFace
from laws.calls import others
from laws.test_layouts import without_rows
from registry import is_complex
from subjects import TorchSubject
from tolerance import close, gradient, sequence_gradient


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


def agree_beside(kernel, formula, rng):
    """The activations, and a recurrence with modReLU."""
    for name, call in others(kernel, rng).items():
        if name != "from_matrix":  # computed on the host for every device
            for a, b in zip(call(formula), call(kernel), strict=True):
                close(a, b, sequence_gradient(kernel.dtype, kernel.factors, 5), name)


#: Keywords of a recurrence of five steps of three sequences, to which biases are added.
OPTIONS = [
    *({"activation": name} for name in ref.NAMES),
    {"activation": "tanh", "lengths": [5, 3, 1]},
    {"activation": "leaky_relu", "slope": 0.4, "lengths": np.array([2, 5, 3]), "reverse": True},
    {"activation": "modrelu", "activation_on": "input", "lengths": np.array([1, 5, 4])},
    {"activation": "tanh", "activation_on": "input", "reverse": True},
]


def agree_over_time(kernel, formula, rng):
    """The states and all gradients of a recurrence under every option; n is even."""
    n, dtype = kernel.n, kernel.dtype
    draw = lambda *shape: ref.normal(rng, *shape, dtype=dtype) / 2
    for option in OPTIONS:
        name = option["activation"]
        if name == "modrelu_realrep" and is_complex(dtype):
            continue
        units = {"modrelu": n, "modrelu_realrep": n // 2}.get(name)
        bias = "bias" if units is None else "activation_bias"
        keywords = {**option, "h0": draw(3, n), bias: draw(n) if units is None else 0.1 + 0 * draw(units).real}
        x, v, ct = draw(5, 3, 2), draw(n, 2), draw(5, 3, n)
        tolerance, floor = sequence_gradient(dtype, kernel.factors, 5), kernel.floor(ct)
        close(formula.recurrence(x, v, **keywords), kernel.recurrence(x, v, **keywords), tolerance, f"{name}: states")
        found, expected = (s.recurrence_vjp(x, v, ct, **keywords) for s in (formula, kernel))
        same(found.pop("transition"), expected.pop("transition"), tolerance, floor)
        same(*({k: g for k, g in grads.items() if g is not None} for grads in (found, expected)), tolerance, floor)


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
    agree_beside(*drawn(case, formula, seed, 5))


def test_formulas_without_rows(case, formula, seed):
    _, subject, _ = drawn(case, formula, seed, 4)
    for lead in ((0,), (2, 0)):
        without_rows(subject, lead)


def test_formulas_of_the_recurrence(case, formula, seed):
    agree_over_time(*drawn(case, formula, seed, 6))


# A recurrence does not depend on how W is constructed.
test_formulas_of_the_recurrence.select = lambda case: case.first
