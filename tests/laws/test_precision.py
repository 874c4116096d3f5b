"""Arguments of several dtypes: the NumPy face promotes as NumPy does; the torch face rejects a second precision by
name, and allows real with complex. A gradient has the dtype of its argument."""

import itertools

import numpy as np
import pytest

import reference as ref
from backends import served
from registry import CASES, DTYPES, is_complex, real_of
from subjects import IN_FACE
from tolerance import close, sequence_gradient


def other(dtype):
    """float64 for float32, complex64 for complex128: the same field, the other precision."""
    return {np.float32: np.float64, np.float64: np.float32, np.complex64: np.complex128, np.complex128: np.complex64}[
        np.dtype(dtype).type
    ]


def cast(a, dtype):
    """The array in a dtype of either field; a conversion to complex adds an imaginary part."""
    if is_complex(dtype) and a.dtype.kind != "c":
        a = a + 0.5j * a[..., ::-1]
    return (a if is_complex(dtype) else a.real).astype(dtype)


def taken(a):
    """Integers become float64."""
    return a if a.dtype.kind in "fc" else a.astype(np.float64)


def result_of(subject, arguments, name, call):
    """The result of the call, or None if the face rejects the mix of dtypes, naming the argument and them."""
    dtypes = [a.dtype for a in arguments.values()]
    if subject.face.mixes or (all(d.kind in "fc" for d in dtypes) and len({real_of(d) for d in dtypes}) == 1):
        return call()
    try:
        call()
    except TypeError as refusal:
        message = str(refusal)
        assert name.partition(".")[0] in message, message
        assert dtypes[list(arguments).index(name)].name in message, message
        return None
    raise AssertionError(f"{name}, {arguments[name].dtype}, was taken beside {set(map(str, dtypes))}")


def bound(subject, *arrays):
    """The tolerance of the least precise dtype."""
    lowest = max((real_of(a.dtype) for a in arrays if a.dtype.kind in "fc"), key=lambda d: np.finfo(d).eps)
    return sequence_gradient(lowest, subject.factors, 3)


def own_dtypes(grads, arguments):
    for name, g in grads.items():
        expected = taken(np.asarray(arguments[name])).dtype
        assert np.asarray(g).dtype == expected, f"gradient of {name} is {np.asarray(g).dtype}, expected {expected}"


def gradients_agree(subject, grads, expected, arguments, ct, tolerance):
    own_dtypes(grads, arguments)
    for name, g in grads.items():
        value = expected[name] if np.asarray(g).dtype.kind == "c" else np.real(expected[name])
        close(g, value, tolerance, f"gradient of {name}", subject.floor(ct))


def arguments_mix(subject, rng):
    """Every argument of the operator in the other precision, with the rest unchanged."""
    first, second, *_ = subject.arguments
    for name, a in subject.arguments.items():
        arguments = {**subject.arguments, name: a.astype(other(a.dtype))}
        mixed, named = subject.with_arguments(**arguments), second if name == first else name
        w = result_of(subject, arguments, named, mixed.matrix)
        if w is not None:
            turned = any(subject.case.object.arguments[k].declared.angles for k in arguments)
            dtype = np.result_type(*arguments.values(), *([np.complex64] if turned else []))
            tolerance = bound(subject, *arguments.values())
            assert w.dtype == dtype, f"W is {w.dtype}, expected {dtype}"
            close(w, mixed.reference(), tolerance, "matrix")
            ct = ref.normal(rng, *w.shape, dtype=dtype)
            grads, expected = mixed.matrix_vjp(ct), mixed.reference_matrix_vjp(ct)
            gradients_agree(mixed, grads, expected, arguments, ct, tolerance)


def rows_mix(subject, rng):
    """Rows and their cotangents in every supported dtype, including integer rows, which are taken for float64."""
    w = subject.reference()
    plain = ref.normal(rng, 2, w.shape[-1])
    rows = [cast(plain, dtype) for dtype in served(DTYPES)]
    rows += [np.round(4 * plain).astype(dtype) for dtype in (np.int32, bool) if served([np.float64])]
    for x in rows:
        arguments = {"the operator": subject.matrix(), "x": x}
        y = result_of(subject, arguments, "x", lambda x=x: subject.apply(x))
        if y is not None:
            dtype = np.result_type(subject.dtype, taken(x))
            assert y.dtype == dtype, f"apply of {x.dtype} is {y.dtype}, expected {dtype}"
            close(y, taken(x) @ w.T, bound(subject, *arguments.values()), "apply")
            for ct_dtype in served((dtype, *((other(dtype), real_of(dtype)) if subject.face.mixes else ()))):
                ct = cast(ref.normal(rng, *y.shape), ct_dtype)
                (grads, x_bar), (expected, expected_x) = (
                    subject.apply_vjp(x, ct),
                    subject.reference_apply_vjp(taken(x), ct),
                )
                tolerance = bound(subject, *arguments.values(), ct)
                gradients_agree(subject, grads, expected, subject.arguments, ct, tolerance)
                gradients_agree(subject, {"x": x_bar}, {"x": expected_x}, {"x": x}, ct, tolerance)


def layer_mixes(subject, rng):
    """Every argument of a recurrence in every other valid dtype, with the rest unchanged."""
    n = subject.n
    draw = lambda *shape: ref.normal(rng, *shape, dtype=subject.dtype) / 2
    plain = {"x": draw(3, 2, 2), "input_weight": draw(n, 2), "h0": draw(2, n), "bias": draw(n)}
    plain["activation_bias"] = 0.1 + 0.1 * np.abs(ref.normal(rng, n, dtype=real_of(subject.dtype)))
    w = subject.reference()
    for name, a in plain.items():
        for dtype in served(DTYPES):
            if dtype is a.dtype.type or (name == "activation_bias" and is_complex(dtype)):
                continue
            given = {**plain, name: cast(a, dtype)}
            layer = (given["x"], given["input_weight"])
            rest = {k: given[k] for k in ("h0", "bias", "activation_bias")} | {"activation": "modrelu"}
            arguments = {"the transition": subject.matrix(), **given}
            states = result_of(
                subject, arguments, name, lambda layer=layer, rest=rest: subject.recurrence(*layer, **rest)
            )
            if states is not None:
                expected, tolerance = ref.recurrence(w, *layer, **rest), bound(subject, *arguments.values())
                assert states.dtype == np.result_type(*arguments.values()), f"states are {states.dtype}"
                close(states, expected, tolerance, "states")
                ct = ref.normal(rng, *states.shape, dtype=states.dtype)
                grads, expected = subject.recurrence_vjp(*layer, ct, **rest), ref.recurrence_vjp(w, *layer, ct, **rest)
                own_dtypes(grads.pop("transition"), subject.arguments)
                grads.pop("start_state", None)  # which is not given
                gradients_agree(subject, grads, expected, given, ct, tolerance)


def activations_mix(subject, rng):
    """modReLU's bias in another dtype than its input."""
    plain, units = ref.normal(rng, 2, 6), 0.1 + 0.1 * np.abs(ref.normal(rng, 6))
    for dtype, real in itertools.product(DTYPES, (np.float32, np.float64)):
        z, bias = cast(plain, dtype), units.astype(real)
        arguments = {"z": z, "bias": bias}
        out = result_of(subject, arguments, "bias", lambda z=z, bias=bias: subject.activate(z, "modrelu", bias))
        if out is not None:
            assert out.dtype == np.result_type(z, bias), f"activate of {z.dtype} and {bias.dtype} is {out.dtype}"
            close(out, ref.activate(z, "modrelu", bias), bound(subject, z, bias), "activate")
            ct = ref.normal(rng, *out.shape, dtype=out.dtype)
            found = subject.activate_vjp(z, "modrelu", ct, bias)
            grads, expected = (
                dict(zip(arguments, each, strict=True)) for each in (found, ref.activate_vjp(z, "modrelu", ct, bias))
            )
            gradients_agree(subject, grads, expected, arguments, ct, bound(subject, z, bias))


@pytest.mark.cpu  # each has an argument in double precision
def test_arguments(make, seed):
    arguments_mix(make(6), seed)


test_arguments.select = lambda case: len(case.draw(np.random.default_rng(0), 4)) > 1


def test_rows(make, seed):
    rows_mix(make(6), seed)


def test_layers(make, seed):
    layer_mixes(make(6), seed)


# A recurrence does not depend on how W is constructed.
test_layers.select = lambda case: case.first


def test_activations(face, seed):
    activations_mix(IN_FACE[face].draw(CASES[0], seed), seed)
