"""One NaN in an argument is NaN in the results of the GPU where it is on the CPU.

Places are compared by bits, since a shader's compiler may assume that comparisons see no NaN.
"""

import numpy as np
import pytest

import isometry as iso
import reference as ref
from backends import SINGLE
from registry import real_of
from subjects import NumpySubject
from support.cells import SUBJECTS, named

SPOILED = ("x", "b", "bias", "activation_bias", "h0")
each_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=named)


def places(a):
    """Where an array has NaN, in a part of a number."""
    a = np.ascontiguousarray(a)
    bits = a.view(np.uint32).reshape(*a.shape, -1)
    return ((bits & 0x7FFFFFFF) > 0x7F800000).any(-1)


def spoiled(a, place=0):
    a = a.copy()
    a.reshape(-1)[place] = np.nan
    return a


def both(call):
    """What a call gives on both devices."""
    for backend in ("cpu", "gpu"):
        with iso.use_backend(backend), np.errstate(all="ignore"):
            yield call()


def same(subject, arrays, ct, **options):
    options |= subject.face.unchecked
    expected, found = both(lambda: subject.states(arrays, **options))
    assert places(expected).any() and np.array_equal(places(found), places(expected))
    expected, found = both(lambda: subject.vjp(arrays, ct, **options))
    for name, g in expected.items():
        assert np.array_equal(places(found[name]), places(g)), name


@each_subject
def test_a_cell_keeps_nan(subject, seed):
    """Of a sequence, the states from its first NaN on, and of every activation."""
    case = subject.case
    for activation in case.activations():
        n, steps, batch = 6, 4, 3
        arrays = case.draw(seed, n, steps, batch, activation=activation, single=True)
        own = case.options(activation) | subject.face.unchecked
        ct = ref.normal(seed, *subject.states(arrays, **own).shape, dtype=case.dtype(True))
        for name in set(SPOILED) & set(arrays):
            place = (arrays[name][:2].size - 1) if name == "x" else 1
            same(subject, {**arrays, name: spoiled(arrays[name], place)}, ct, **case.options(activation))


def test_an_operator_keeps_nan(case, seed):
    """A NaN of x reaches what it reaches on the CPU, whose kernels may leave out zeros of W, and no other row."""
    subject = NumpySubject.draw(case, seed, 6)
    op, (p, q) = subject.operator(), subject.reference().shape[-2:]
    x, ct = (ref.normal(seed, 3, size, dtype=case.dtype) for size in (q, p))
    expected, found = both(lambda: op.apply(spoiled(x, q + 1), check_finite=False))
    expected, found = places(expected), places(found)
    assert expected[1].any() and not (expected & ~found).any() and not found[[0, 2]].any()
    (expected, of_x), (found, x_bar) = both(lambda: subject.unchecked().apply_vjp(spoiled(x), ct))
    for name, g in {**expected, "x": of_x}.items():
        assert g is None or not (places(g) & ~places({**found, "x": x_bar}[name])).any(), name


def test_parameters_keep_nan(case, seed):
    """W of parameters that are NaN is NaN on the GPU where it is on the CPU."""
    subject = NumpySubject.draw(case, seed, 6)
    for name, a in subject.arguments.items():
        if a.dtype.kind not in "fc":
            continue
        op = subject.with_arguments(**{name: spoiled(a)}).operator()
        expected, found = (places(w) for w in both(lambda op=op: op.matrix(check_finite=False)))
        assert not (expected & ~found).any(), name
        x = ref.normal(seed, 3, found.shape[-1], dtype=case.dtype)
        expected, found = (places(y) for y in both(lambda op=op, x=x: op.apply(x, check_finite=False)))
        assert not (expected & ~found).any(), name


for law in (test_an_operator_keeps_nan, test_parameters_keep_nan):
    law.select = lambda case: case.dtype in SINGLE


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize(
    "name", ["identity", "tanh", "relu", "leaky_relu", "oplu", "oplu_halves", "modrelu", "modrelu_realrep"]
)
def test_an_activation_keeps_nan(name, dtype, seed):
    if name == "modrelu_realrep" and dtype == np.complex64:
        return
    units = {"modrelu": 8, "modrelu_realrep": 4}.get(name)
    bias = ref.normal(seed, units, dtype=real_of(dtype)) if units else None
    options = {} if bias is None else {"bias": bias}
    z, ct = (ref.normal(seed, 3, 8, dtype=dtype) for _ in range(2))
    for place in range(8):
        bad = spoiled(z, place)
        expected = iso.activate(bad, name, check_finite=False, **options)
        resident = iso.gpu.Array(bad)
        with iso.use_backend("gpu"):
            found = iso.activate(resident, name, **options).download()
            pulled = iso.activate_vjp(resident, name, iso.gpu.Array(ct), **options)
        assert places(expected).any() and np.array_equal(places(found), places(expected))
        expected = iso.activate_vjp(bad, name, ct, check_finite=False, **options)
        for a, b in zip(pulled, expected, strict=True):
            assert b is None or np.array_equal(places(a.download()), places(b))
