"""Results of one thread and of many are bitwise equal, at sizes where the second thread is used."""

import numpy as np
import pytest
from torch.utils._pytree import tree_leaves

import isometry as iso
import reference as ref
from faces import NumpyFace
from registry import DTYPES, OBJECTS, Case, is_complex
from registry.functions import FUNCTIONS, Draw
from subjects import IN_FACE
from tolerance import identical
from workers import CORES, watched

pytestmark = [
    pytest.mark.alone,  # a thread that gets no core in time is not used
    pytest.mark.cpu,
]


def calls(subject, rng, rows):
    """Everything that may use threads: name -> a function without arguments that returns a list of arrays."""
    n_out, n_in = subject.matrix().shape[-2:]
    lead = (rows, *subject.batch_shape)
    x, ct = (ref.normal(rng, *lead, k, dtype=subject.dtype) for k in (n_in, n_out))
    w_bar = ref.normal(rng, *subject.batch_shape, n_out, n_in, dtype=subject.dtype)

    def apply_vjp():
        grads, x_bar = subject.apply_vjp(x, ct)
        return [x_bar, *grads.values()]

    found = {
        "matrix": lambda: [subject.matrix()],
        "matrix_vjp": lambda: list(subject.matrix_vjp(w_bar).values()),
        "apply": lambda: [subject.apply(x)],
        "apply_adjoint": lambda: [subject.apply_adjoint(ct)],
        "apply_vjp": apply_vjp,
    }
    if n_in == n_out and not subject.batch_shape:
        steps, v = (
            ref.normal(rng, 10, rows // 10, 3, dtype=subject.dtype),
            ref.normal(rng, n_in, 3, dtype=subject.dtype),
        )
        bar = np.ones((10, rows // 10, n_in), subject.dtype)

        def recurrence_vjp():
            g = subject.recurrence_vjp(steps, v, bar)
            return [g["x"], g["input_weight"], *g["transition"].values()]

        found |= {"recurrence": lambda: [subject.recurrence(steps, v)], "recurrence_vjp": recurrence_vjp}
    return found


def threaded(subject, rng, rows=300, budgets=(2, 3)):
    for name, call in calls(subject, rng, rows).items():
        subject.package.set_num_threads(1)
        one = call()
        for budget in budgets:
            subject.package.set_num_threads(budget)
            for a, b in zip(call(), one, strict=True):
                identical(a, b, f"{name} with {budget} threads")


def test_threads(make, seed, threads):  # noqa: ARG001  the fixture restores the budget
    threaded(make(192), seed, rows=200)


def test_threads_over_stacks(make, seed, threads):  # noqa: ARG001
    threaded(make(40, (64,)), seed, rows=4)


@pytest.mark.parametrize("name", [name for name, entry in FUNCTIONS.items() if entry.large])
def test_functions(name, seed, threads):  # noqa: ARG001
    entry = FUNCTIONS[name]
    for drawn in entry.large:
        given, found = {**entry.options, **drawn(Draw(seed, np.float32))}, []
        for budget in (1, 2, 3, 16):
            iso.set_num_threads(budget)
            results = tree_leaves(entry.of(NumpyFace(), name)(**given))
            found.append([a for a in results if a is not None])
        for other in found[1:]:
            for a, b in zip(other, found[0], strict=True):
                identical(a, b, name)


LARGE = [
    pytest.param(stem, large, dtype, id=f"{np.dtype(dtype).name}-{stem} {name}")
    for stem in OBJECTS
    for name, large in OBJECTS[stem].large.items()
    for dtype in DTYPES
    if ("c" if is_complex(dtype) else "r") in OBJECTS[stem].variants[large.variant].fields
]


def test_every_object_has_large_sizes():
    assert all(entry.large for entry in OBJECTS.values())


@pytest.mark.parametrize(("stem", "large", "dtype"), LARGE)
def test_the_second_thread_works(face, stem, large, dtype, seed, threads):  # noqa: ARG001
    subject = IN_FACE[face](Case(stem, large.variant, dtype), large.draw(seed, dtype), n=large.n)
    for what, call in calls(subject, seed, large.rows).items():
        results = {}
        for budget in (1, 2):
            subject.package.set_num_threads(budget)
            results[budget], helped = watched(call)
            if budget > 1 and CORES > 1 and what not in large.idle:
                assert helped, f"{what} with {budget} threads used one"
            # torch's own copies around a call use torch's own setting
            if budget == 1 and subject.face.checks:
                assert not helped, f"{what} with one thread used more"
        for a, b in zip(results[2], results[1], strict=True):
            identical(a, b, f"{what} with two threads")
