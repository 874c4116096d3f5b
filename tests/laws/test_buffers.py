"""Every output is written in full: buffers that start as NaN change nothing."""

import reference as ref
from laws.calls import others
from tolerance import identical


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
