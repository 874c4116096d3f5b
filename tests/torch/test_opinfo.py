"""What PyTorch's own tests ask of householder_product, ormqr and geqrf, on its samples, of these functions in their
place."""

import warnings

import pytest
import torch
from torch.testing import assert_close

import isometry.torch as it

pytestmark = pytest.mark.extra

NAMES = {
    "geqrf": it.linalg.geqrf,
    "ormqr": it.linalg.ormqr,
    "linalg.householder_product": it.linalg.householder_product,
}
TYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
each_function = pytest.mark.parametrize("name", NAMES)
each_type = pytest.mark.parametrize("dtype", TYPES, ids=str)


@pytest.fixture(scope="module")
def infos():
    """torch's descriptions of its functions, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {info.name: info for info in op_db if info.name in NAMES}


def samples(info, dtype, **more):
    torch.manual_seed(0)
    drawn = list(info.sample_inputs("cpu", dtype, **more))
    assert len(drawn) >= 8
    return drawn


def results(found):
    return (found,) if isinstance(found, torch.Tensor) else tuple(found)


def bars(dtype):
    """rtol and atol for products of factors that are no reflections."""
    eps = torch.finfo(dtype).eps
    return {"rtol": 1e4 * eps, "atol": 1e4 * eps}


@each_type
@each_function
def test_samples(infos, name, dtype):
    """torch's values, shapes and dtypes, and a contiguous layout, of empty results too; also of inputs that are not
    contiguous, conjugated or negated."""
    for sample in samples(infos[name], dtype):
        expected = results(infos[name].op(sample.input, *sample.args, **sample.kwargs))
        strided = sample.noncontiguous()
        turned = [sample.transform(change) for change in (conjugate, negated)]
        for s in (sample, strided, *turned):
            found = results(NAMES[name](s.input, *s.args, **s.kwargs))
            assert_close(found, expected, **bars(dtype))
            for t in found:
                assert t.stride() == torch.empty(t.shape).stride(), t.shape


def conjugate(x):
    """The same values as a lazy conjugate."""
    return torch.conj(x.conj().resolve_conj()) if isinstance(x, torch.Tensor) and x.is_complex() else x


def negated(x):
    """The same values as a lazy negation."""
    if not isinstance(x, torch.Tensor):
        return x
    return torch._neg_view(-x)


@each_type
@each_function
def test_out(infos, name, dtype):
    """Tensors of the right shape keep strides and memory, empty ones get a shape, and of a dtype that torch can cast to
    they get the values; torch resizes tensors of another shape with a warning, which is an error here."""
    for sample in samples(infos[name], dtype):
        call = lambda out, s=sample: NAMES[name](s.input, *s.args, out=out if len(out) > 1 else out[0], **s.kwargs)
        expected = results(NAMES[name](sample.input, *sample.args, **sample.kwargs))
        wide = torch.complex128 if dtype.is_complex else torch.float64
        makes = {
            "nan": lambda t: torch.full_like(t, float("nan")),
            "strided": lambda t: t.new_empty(*t.shape, 2)[..., 0],
            "transposed": lambda t: t.new_empty(t.shape[::-1]).permute(*range(t.dim())[::-1]),
            "empty": lambda t: t.new_empty(0),
            "wider": lambda t: t.new_empty(t.shape, dtype=wide),
        }
        for kind, make in makes.items():
            out = tuple(map(make, expected))
            layout = [(t.stride(), t.data_ptr()) for t in out]
            found = results(call(out))
            assert all(a is b for a, b in zip(found, out, strict=True))
            assert_close(found, expected, rtol=0, atol=0, check_dtype=False)
            assert kind == "empty" or [(t.stride(), t.data_ptr()) for t in out] == layout
        if all(t.numel() for t in expected):
            with pytest.raises(ValueError, match="^out must have shape"):
                call(tuple(t.new_empty(7, *t.shape) for t in expected))
        with pytest.raises(TypeError, match="^out must be"):
            call(tuple(torch.empty_like(t, dtype=torch.int64) for t in expected))


@each_function
def test_error_inputs(infos, name):
    """Errors where torch has them, a ValueError or a TypeError in place of its RuntimeError."""
    own = list(infos[name].error_inputs("cpu")) if infos[name].error_inputs_func else []
    assert bool(own) == (name == "ormqr")
    for error in own:
        s = error.sample_input
        with pytest.raises(error.error_type):
            infos[name].op(s.input, *s.args, **s.kwargs)
        with pytest.raises((ValueError, TypeError)):
            NAMES[name](s.input, *s.args, **s.kwargs)


@each_function
def test_tensors_of_subclasses(infos, name):
    """Wrapped tensors, alone and beside plain ones, give wrapped results, and the gradients of plain ones."""
    from torch.testing._internal.composite_compliance import (
        check_all_permutations,
        check_backward_formula,
        check_with_mode,
    )

    close = lambda a, b, **_: assert_close(a, b, **bars(torch.float64))
    for sample in samples(infos[name], torch.float64, requires_grad=True)[::4]:
        given = [sample.input, *sample.args], sample.kwargs
        check_with_mode(NAMES[name], *given, close)
        check_all_permutations(NAMES[name], *given, close)
        if sample.input.numel():
            check_backward_formula(NAMES[name], *given, sample.output_process_fn_grad, None, close)
