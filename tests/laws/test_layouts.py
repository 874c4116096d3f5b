"""Arrays: bits for every memory layout, arguments that stay, stacks and broadcasting, every cell of a result."""

import numpy as np

import reference as ref
from laws.calls import others
from tolerance import close, forward, gradient, identical


def same_bits(subject, rng, layout):
    n_out, n_in = subject.reference().shape[-2:]
    lead = subject.batch_shape
    x, y, ct = (ref.normal(rng, 4, *lead, k, dtype=subject.dtype) for k in (n_in, n_out, n_out))
    w_bar = ref.normal(rng, *lead, n_out, n_in, dtype=subject.dtype)
    other = subject.with_layout(layout)
    identical(other.matrix(), subject.matrix(), "matrix")
    identical(other.apply(x), subject.apply(x), "apply")
    identical(other.apply_adjoint(y), subject.apply_adjoint(y), "apply_adjoint")
    (grads, x_bar), (plain, plain_x) = other.apply_vjp(x, ct), subject.apply_vjp(x, ct)
    identical(x_bar, plain_x, "x_bar")
    for found, expected in ((grads, plain), (other.matrix_vjp(w_bar), subject.matrix_vjp(w_bar))):
        for name, g in expected.items():
            identical(found[name], g, f"gradient of {name}")
    for name, call in others(subject, rng).items():
        for found, expected in zip(call(other), call(subject), strict=True):
            identical(found, expected, name)


def untouched(subject, rng):
    n_out, n_in = subject.reference().shape[-2:]
    x, ct = (ref.normal(rng, 2, *subject.batch_shape, k, dtype=subject.dtype) for k in (n_in, n_out))
    w_bar = np.ones((*subject.batch_shape, n_out, n_in), subject.dtype)
    held = [*subject.arguments.values(), x, ct, w_bar]
    before = [a.copy() for a in held]
    results = [subject.apply(x), subject.apply_adjoint(ct), subject.matrix(), subject.apply_vjp(x, ct)[1]]
    subject.matrix_vjp(w_bar)
    for a, b in zip(held, before, strict=True):
        identical(a, b, "an argument")
    for r in results:
        assert r.flags.writeable
        assert not any(np.shares_memory(r, a) for a in held), "a result is a fresh array"


def test_layouts(make, seed):
    subject = make(6)
    for layout in list(subject.face.layouts)[1:]:
        same_bits(subject, seed, layout)
        same_bits(make(4, (3,)), seed, layout)


def test_arguments_are_not_modified(make, seed):
    untouched(make(6), seed)
    untouched(make(4, (3,)), seed)


def broadcast(subject, rng, lead):
    """Leading axes of x with the operator's own."""
    w = subject.reference()
    x = ref.normal(rng, *lead, w.shape[-1], dtype=subject.dtype)
    full = np.broadcast_shapes(subject.batch_shape, lead)
    ct = ref.normal(rng, *full, w.shape[-2], dtype=subject.dtype)
    close(subject.apply(x), np.einsum("...ij,...j->...i", w, x), forward(subject.dtype, subject.factors), "apply")
    (grads, x_bar), (expected, expected_x) = subject.apply_vjp(x, ct), subject.reference_apply_vjp(x, ct)
    tolerance = gradient(subject.dtype, subject.factors)
    close(x_bar, expected_x, tolerance, "x_bar")
    for name, g in grads.items():
        close(g, expected[name], tolerance, f"gradient of {name}", subject.floor(ct))


def test_leading_axes_broadcast(make, seed):
    for batch, lead in (
        ((), ()),
        ((), (2, 3)),
        ((3,), ()),
        ((3,), (4, 3)),
        ((3, 1), (4,)),
        ((2, 1, 3), (5, 1)),
        ((1,), (4,)),
    ):
        broadcast(make(4, batch), seed, lead)


def test_arguments_of_different_stacks_broadcast(make, seed):
    """Any single argument may have the batch axes."""
    plain, wide = make(4), make(4, (3,))
    for name in plain.arguments:
        broadcast(plain.with_arguments(**{name: wide.arguments[name]}), seed, (3,))


def without_rows(subject, lead):
    n_out, n_in = subject.matrix().shape[-2:]
    x, ct = np.zeros((*lead, n_in), subject.dtype), np.zeros((*lead, n_out), subject.dtype)
    assert subject.apply(x).shape == ct.shape
    assert subject.apply_adjoint(ct).shape == x.shape
    assert subject.matrix().shape[:-2] == subject.batch_shape
    grads, x_bar = subject.apply_vjp(x, ct)
    assert x_bar.shape == x.shape
    for name, g in grads.items():
        assert np.shape(g) == subject.arguments[name].shape
        assert not np.any(g), f"gradient of {name} without rows"


def test_no_rows(make):
    for lead in ((0,), (2, 0)):
        without_rows(make(4), lead)


def test_empty_stacks(make):
    for batch, lead in (((3,), (0, 3)), ((0,), (0,)), ((0,), (2, 0))):
        without_rows(make(4, batch), lead)


def results(subject, x, ct, w_bar, calls):
    grads, x_bar = subject.apply_vjp(x, ct)
    return [
        subject.matrix(), subject.apply(x), subject.apply_adjoint(ct), x_bar,
        *grads.values(), *subject.matrix_vjp(w_bar).values(),
        *(a for call in calls.values() for a in call(subject)),
    ]  # fmt: skip


def overwritten(subject, rng, poison, monkeypatch):
    n_out, n_in = subject.reference().shape[-2:]
    x, ct = (ref.normal(rng, 3, *subject.batch_shape, k, dtype=subject.dtype) for k in (n_in, n_out))
    w_bar = ref.normal(rng, *subject.batch_shape, n_out, n_in, dtype=subject.dtype)
    calls = others(subject, rng)
    poisoned = results(subject, x, ct, w_bar, calls)
    assert poison.count > 0, "no output came from np.empty or torch.empty"
    monkeypatch.undo()
    for a, b in zip(poisoned, results(subject, x, ct, w_bar, calls), strict=True):
        identical(a, b, "a result")


def test_buffers(make, seed, poison, monkeypatch):
    overwritten(make(7), seed, poison, monkeypatch)


def test_buffers_of_stacks(make, seed, poison, monkeypatch):
    overwritten(make(4, (3,)), seed, poison, monkeypatch)


def test_buffers_of_large_ones(make, seed, poison, monkeypatch):
    overwritten(make(40), seed, poison, monkeypatch)
