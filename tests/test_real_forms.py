"""Real forms of complex arrays and back, in both faces: values, their adjoints in torch, what is refused."""

import numpy as np
import pytest
import torch

import isometry as iso
import isometry.torch as it
import reference as ref
from faces import tensor
from registry import DTYPES, is_complex, real_of
from tolerance import identical

#: Function -> its argument, the axes of one matrix or row, the value.
FORMS = {
    "real_matrix": ("w", 2, lambda w: np.block([[w.real, -w.imag], [w.imag, w.real]])),
    "real_state": ("z", 1, lambda z: np.concatenate([z.real, z.imag], -1)),
    "real_input": ("v", 2, lambda v: np.concatenate([v.real, v.imag], -2)),
    "complex_matrix": ("r", 2, lambda r: r[..., :2, :3] + 1j * r[..., 2:, :3]),
    "complex_state": ("r", 1, lambda r: r[..., :3] + 1j * r[..., 3:]),
}
each_form = pytest.mark.parametrize("name", FORMS)


def drawn(name, rng, dtype, lead=(2, 1)):
    real = name.startswith("complex")
    return ref.normal(rng, *lead, *((4, 6) if real else (2, 3))[2 - FORMS[name][1] :], dtype=dtype)


@each_form
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_values(name, dtype, seed):
    real = name.startswith("complex")
    if real and is_complex(dtype):
        return
    a = drawn(name, seed, dtype)
    expected = FORMS[name][2](a).astype(np.result_type(dtype, np.complex64) if real else real_of(dtype))
    for found in (getattr(iso, name)(a), getattr(it, name)(tensor(a)).numpy()):
        identical(found, expected)


@each_form
def test_gradients_are_adjoint(name, seed):
    """The products of both sides are equal: <ct, f(a)> = <a_bar, a>, for f is linear over the real numbers."""
    a = drawn(name, seed, np.float64 if name.startswith("complex") else np.complex128)
    x, other = tensor(a).requires_grad_(), tensor(drawn(name, seed, a.dtype))
    out = getattr(it, name)(x)
    ct = torch.randn_like(out)
    (bar,) = torch.autograd.grad(out, x, ct)
    inner = lambda p, q: (p.conj() * q).sum().real
    assert torch.allclose(inner(ct, getattr(it, name)(other)), inner(bar, other), rtol=1e-12)


@each_form
def test_shapes_that_are_refused(name):
    """Too few axes, and an odd size of a real form, whichever axis has it."""
    argument, rank, _ = FORMS[name]
    shapes = [(4,) * (rank - 1)]
    shapes += [(3,), (3, 4), (4, 3)][rank - 1 : 2 * rank - 1] if name.startswith("complex") else []
    for shape in shapes:
        for function, take in ((getattr(iso, name), np.ones), (getattr(it, name), torch.ones)):
            with pytest.raises(ValueError, match=f"^{argument} must"):
                function(take(shape))
