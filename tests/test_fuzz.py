"""Random shapes, dtypes, strides and values at every public function: a result or a named exception, nothing else.

A panic is no Exception and passes through; a crash or a hang ends the process (the watchdog prints where).
"""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzzing as fz
import isometry as iso
import isometry.torch as it
from faces import LAYOUTS
from registry import OBJECTS
from tolerance import forward

pytestmark = pytest.mark.timeout(240, method="thread")
REFUSALS = (ValueError, TypeError, NotImplementedError)
FLOATS = (np.float32, np.float64, np.complex64, np.complex128)
CLASSES = [getattr(iso, entry.cls) for entry in OBJECTS.values()]
objects = st.sampled_from(list(OBJECTS.values()))


def attempt(function, *args, **keywords):
    """The result, or None where a named exception with a message was raised; no argument is modified."""
    before = copy.deepcopy((args, keywords))
    try:
        with np.errstate(all="ignore"):
            result = function(*args, **keywords)
    except REFUSALS as refusal:
        assert str(refusal), f"{type(refusal).__name__} without a message"
        result = None
    for a, b in zip((*args, *keywords.values()), (*before[0], *before[1].values()), strict=True):
        if isinstance(a, np.ndarray) and a.dtype.kind != "O":
            assert a.dtype == b.dtype
            assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes(), "an argument was modified"
    return result


def good(a, shape=None):
    """A fresh NumPy array of one of the four types."""
    assert isinstance(a, np.ndarray), type(a)
    assert a.dtype in FLOATS, a.dtype
    assert shape is None or a.shape == shape
    return a


@st.composite
def operators(draw):
    """An object and arguments of about the right shapes."""
    n, m, lead = draw(fz.sizes), draw(fz.sizes), draw(fz.leads())
    dtype = draw(fz.dtypes)
    entry = draw(objects)
    arguments = {}
    for name, argument in entry.arguments.items():
        random = fz.arrays((*lead, *argument.shape(n, m)), real_of(dtype) if argument.real else dtype)
        special = argument.special(n)
        one = st.one_of(st.sampled_from(special), random) if special else random
        arguments[name] = draw(fz.maybe(one) if arguments else one)
    return entry, arguments


def real_of(dtype):
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def built(chosen):
    entry, arguments = chosen
    keep = {k: a for k, a in arguments.items() if a is not None}
    both = [k for k in entry.either if k in keep]
    if len(keep) % 2:
        for name in both[:-1]:
            del keep[name]
    return attempt(getattr(iso, entry.cls), **keep), keep


@settings(max_examples=1500)
@given(st.data(), operators(), fz.flags)
def test_operators(data, chosen, check):
    entry, (op, arguments) = chosen[0], built(chosen)
    if op is None:
        return
    n_out, n_in = op.shape
    w = attempt(op.matrix, check_finite=check)
    if w is not None:
        good(w, (*op.batch_shape, n_out, n_in))
    lead = data.draw(st.one_of(fz.leads(), st.just(op.batch_shape)))
    dtype = np.dtype(op.dtype).name
    x, y = data.draw(fz.arrays((*lead, n_in), dtype)), data.draw(fz.arrays((*lead, n_out), dtype))
    out = attempt(op.apply, x, check_finite=check)
    if out is not None:
        good(out, (*np.broadcast_shapes(op.batch_shape, np.shape(x)[:-1]), n_out))
    back = attempt(op.apply_adjoint, y, check_finite=check)
    if back is not None:
        good(back, (*np.broadcast_shapes(op.batch_shape, np.shape(y)[:-1]), n_in))
    result = attempt(op.apply_vjp, x, y, check_finite=check)
    if result is not None:
        grads, x_bar = result
        good(x_bar, np.shape(x))
        shaped(grads, arguments, entry)
    w_bar = data.draw(fz.arrays((*op.batch_shape, n_out, n_in), dtype))
    grads = attempt(op.matrix_vjp, w_bar, check_finite=check)
    if grads is not None:
        shaped(grads, arguments, entry)


def shaped(grads, arguments, entry):
    assert set(grads) == set(arguments) - set(entry.fixed)
    for name, g in grads.items():
        assert np.shape(g) == np.shape(arguments[name]), name
        assert np.asarray(g).dtype in FLOATS


@settings(max_examples=40)
@given(st.data(), objects, st.integers(1, 120), st.integers(0, 2000), st.sampled_from((*fz.REAL, *fz.COMPLEX)),
       st.integers(1, 3))  # fmt: skip
def test_large(data, entry, n, rows, dtype, budget):
    """Sizes at which threads, tails of tiles and blocks come in; the values are right, not only of the right shape."""
    wanted = entry.square(n, data.draw(st.integers(0, 150)))
    draw = lambda *shape: fz.values(np.random.default_rng(data.draw(fz.seeds)), shape, dtype)
    layout = lambda a: LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))](a)
    before = iso.get_num_threads()
    iso.set_num_threads(budget)
    try:
        op = getattr(iso, entry.cls)(layout(draw(*wanted)))
        x, ct = draw(rows, n), draw(rows, n)
        w = good(op.matrix(), (n, n))
        size = 1e-3 + np.linalg.norm(w) * np.linalg.norm(x)
        near = forward(dtype, n + 150) * size
        assert np.linalg.norm(good(op.apply(layout(x)), (rows, n)) - x @ w.T) <= near
        assert np.linalg.norm(good(op.apply_adjoint(layout(x)), (rows, n)) - x @ w.conj()) <= near
        grads, x_bar = op.apply_vjp(layout(x), layout(ct))
        assert all(np.isfinite(g).all() for g in (x_bar, *grads.values()))
        assert all(np.isfinite(g).all() for g in op.matrix_vjp(layout(draw(n, n))).values())
        steps = data.draw(st.integers(1, 20))
        batch = max(rows // 20, 1)
        xs, v = draw(steps, batch, 2), draw(n, 2)
        states = good(iso.recurrence(op, layout(xs), layout(v)), (steps, batch, n))
        found = iso.recurrence_vjp(op, layout(xs), layout(v), states, layout(np.ones_like(states)))
        assert all(np.isfinite(g).all() for g in (found["x"], found["input_weight"], *found["transition"].values()))
    finally:
        iso.set_num_threads(before)


@st.composite
def layers(draw):
    """About the arguments of a recurrence over an operator of size n."""
    n, steps, batch, d = (draw(st.integers(0, 4)) for _ in range(4))
    n = n + 1 if draw(fz.flags) else n
    dtype = draw(fz.dtypes)
    real = real_of(dtype)
    keywords = {
        "h0": draw(fz.maybe(st.one_of(fz.arrays((batch, n), dtype), fz.arrays((n,), dtype)))),
        "bias": draw(fz.maybe(fz.arrays((n,), dtype))),
        "activation": draw(fz.names),
        "slope": draw(st.sampled_from((0.1, 0.0, 0.9, 1.0, -0.1, float("nan"), "steep"))),
        "activation_on": draw(st.sampled_from(("all", "input", "all", "nothing"))),
        "lengths": draw(fz.maybe(st.lists(st.integers(-1, 6), min_size=0, max_size=5))),
        "reverse": draw(fz.flags),
        "check_finite": draw(fz.flags),
    }
    if str(keywords["activation"]).startswith("modrelu") or draw(fz.rarely):
        units = n // 2 if keywords["activation"] == "modrelu_realrep" else n
        keywords["activation_bias"] = draw(fz.arrays((units,), real))
    if keywords["activation"] != "leaky_relu" and not draw(fz.rarely):
        keywords["slope"] = 0.1
    x, v = draw(fz.arrays((steps, batch, d), dtype)), draw(fz.arrays((n, d), dtype))
    return n, dtype, x, v, {k: a for k, a in keywords.items() if a is not None}


@settings(max_examples=1500)
@given(st.data(), layers())
def test_recurrence(data, layer):
    n, dtype, x, v, keywords = layer
    entry = data.draw(objects)
    op = attempt(getattr(iso, entry.cls), data.draw(fz.arrays(entry.square(n, data.draw(fz.sizes)), dtype)))
    if op is None:
        return
    states = attempt(iso.recurrence, op, x, v, **keywords)
    if states is None:
        return
    steps, batch = np.shape(x)[:2]
    good(states, (steps, batch, op.shape[0]))
    ct = data.draw(fz.arrays(states.shape, states.dtype.name))
    grads = attempt(iso.recurrence_vjp, op, x, v, states, ct, **keywords)
    if grads is None:
        return
    given_ = {"x": x, "input_weight": v, **keywords}
    for name in ("x", "input_weight", "h0", "bias", "activation_bias"):
        if name in given_:
            good(grads[name], np.shape(given_[name]))
        else:
            assert grads[name] is None


@settings(max_examples=1100)
@given(st.data(), fz.leads(), fz.sizes, fz.dtypes, fz.names, fz.flags)
def test_activations(data, lead, n, dtype, name, check):
    z = data.draw(fz.arrays((*lead, n), dtype))
    real = real_of(dtype)
    units = n // 2 if name == "modrelu_realrep" else n
    wants = str(name).startswith("modrelu") or data.draw(fz.rarely)
    bias = data.draw(fz.arrays((units,), real)) if wants else None
    out = attempt(iso.activate, z, name, bias=bias, check_finite=check)
    if out is not None:
        good(out, np.shape(z))
    result = attempt(iso.activate_vjp, z, name, data.draw(fz.arrays((*lead, n), dtype)), bias=bias, check_finite=check)
    if result is not None:
        good(result[0], np.shape(z))
        assert (result[1] is None) == (bias is None)


@settings(max_examples=650)
@given(st.data(), fz.leads(), fz.sizes, fz.dtypes)
def test_matrices(data, lead, n, dtype):
    """Inverse maps and conversions, on orthogonal matrices and on anything else."""
    w = data.draw(fz.arrays((*lead, n, n), dtype))
    if isinstance(w, np.ndarray) and w.dtype.kind in "fc" and w.ndim >= 2 and w.shape[-1] == w.shape[-2] > 0:
        finite = np.clip(np.nan_to_num(w.real.astype(np.float64)), -9, 9)
        w = np.linalg.qr(finite)[0] if data.draw(fz.flags) else w
    inverses = [make.from_matrix for make in CLASSES if hasattr(make, "from_matrix")]
    for call in (*inverses, iso.Cayley.from_skew):
        op = attempt(call, w)
        if op is not None:
            good(op.matrix(), np.shape(w))
    attempt(iso.Householder.from_trapezoid, w, sign=data.draw(st.sampled_from(("hard", "soft", "firm", None))))
    for call in (iso.orthogonality_error, iso.real_matrix, iso.real_state, iso.real_input, iso.complex_matrix,
                 iso.complex_state):  # fmt: skip
        result = attempt(call, w)
        assert result is None or np.asarray(result).dtype in FLOATS


@settings(max_examples=300)
@given(st.data(), st.integers(-1, 6), st.integers(-1, 6), fz.seeds)
def test_draws(data, n, m, seed):
    """Random operators and tasks, any size."""
    dtype = data.draw(fz.dtypes)
    for make in CLASSES:
        op = attempt(make.random, n, rng=seed, dtype=dtype)
        if op is not None:
            good(op.matrix(), (n, n))
    attempt(iso.Householder.random, n, m, rng=seed, dtype=dtype)
    attempt(iso.tasks.adding, n, m, seed, variant=data.draw(st.sampled_from(("halves", "half_open", "thirds"))))
    attempt(iso.tasks.copying, n, m, seed, marker_offset=data.draw(st.integers(-1, 2)))
    attempt(iso.tasks.one_hot, data.draw(fz.arrays((max(n, 0),), "int64")), m)
    attempt(iso.tasks.pixels, data.draw(fz.arrays((max(n, 0), max(m, 0), 2), "uint8")), None)
    before = iso.get_num_threads()
    attempt(iso.set_num_threads, data.draw(st.sampled_from((0, -1, 1, 2, 1.5, "two", None))))
    iso.set_num_threads(before)


# ---------------------------------------------------------------- torch


def tensor(a):
    """A tensor of the array where torch has the type; anything else passes as it is."""
    if not isinstance(a, np.ndarray):
        return a
    try:
        return torch.from_numpy(a.astype(a.dtype.newbyteorder("="), order="C"))
    except TypeError:
        return a


def tensors(arguments):
    return {k: tensor(a) for k, a in arguments.items()}


def pulled(out):
    if out is not None and out.requires_grad:
        out.backward(torch.ones_like(out))


@settings(max_examples=850)
@given(st.data(), operators())
def test_torch_operators(data, chosen):
    entry, arguments = chosen
    keep = tensors({k: a for k, a in arguments.items() if a is not None})
    grown = {k: t if k in entry.fixed else graded(t) for k, t in keep.items()}
    op = attempt(getattr(it, entry.cls), **grown)
    if op is None:
        return
    w = attempt(op.matrix)
    assert w.shape == (*op.batch_shape, *op.shape)
    pulled(w)
    x = tensor(data.draw(fz.arrays((*data.draw(fz.leads()), op.shape[1]), str(op.dtype).removeprefix("torch."))))
    out = attempt(op.apply, graded(x))
    if out is not None:
        assert out.shape == (*torch.broadcast_shapes(op.batch_shape, x.shape[:-1]), op.shape[0])
        pulled(out)


def graded(t):
    differentiable = isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())
    return t.clone().requires_grad_() if differentiable else t


@settings(max_examples=850)
@given(st.data(), layers())
def test_torch_recurrence(data, layer):
    n, dtype, x, v, keywords = layer
    keywords.pop("check_finite")
    keywords = {k: graded(tensor(a)) for k, a in keywords.items()}
    entry = data.draw(objects)
    argument = data.draw(fz.arrays(entry.square(n, data.draw(fz.sizes)), dtype))
    op = attempt(getattr(it, entry.cls), graded(tensor(argument)))
    if op is not None:
        states = attempt(it.recurrence, op, graded(tensor(x)), graded(tensor(v)), **keywords)
        if states is not None:
            assert states.shape == (*np.shape(x)[:2], op.shape[0])
            pulled(states)


@settings(max_examples=400)
@given(st.data(), fz.leads(), fz.sizes, fz.dtypes, fz.names)
def test_torch_activations(data, lead, n, dtype, name):
    z = tensor(data.draw(fz.arrays((*lead, n), dtype)))
    bias = tensor(data.draw(fz.arrays((n,), dtype))) if str(name).startswith("modrelu") else None
    out = attempt(it.activate, graded(z), name, bias=bias)
    if out is not None:
        assert out.shape == z.shape
        pulled(out)
