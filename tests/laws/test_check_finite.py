"""NaN and infinity: an error that names the argument in the NumPy face, accepted with check_finite off and in the
torch face."""

import inspect
from functools import partial

import numpy as np
import pytest

import isometry as iso
import reference as ref
from registry import CASES, DTYPES, OBJECTS, is_complex, real_of
from registry.cells import CELLS, CellCase
from registry.functions import FUNCTIONS, Draw
from subjects import NumpySubject, TorchSubject
from support.cells import NumpyCell

N = 4
#: What no setting lets through: it lies outside the range of the argument.
BOUNDED = {"sign": (np.inf, -np.inf)}


def bad_values(a):
    yield from (np.nan, np.inf, -np.inf)
    if a.dtype.kind == "c":
        yield complex(0, np.nan)


def spoiled(a, bad):
    a = a.copy()
    a[(-1,) * a.ndim] = bad
    return a


def refused(call, *arguments):
    """The message of a ValueError, None if there is none."""
    try:
        with np.errstate(all="ignore"):
            call(*arguments)
    except ValueError as error:
        return str(error)
    return None


def refuses(call, arguments, inverse=False):
    """call(arguments, check_finite) rejects each argument that is not finite, and accepts it without the check.

    An inverse map cannot accept it: it then raises another error for the same argument.
    """
    assert refused(call, arguments, True) is None
    for name, a in arguments.items():
        for bad in bad_values(a):
            given = {**arguments, name: spoiled(a, bad)}
            bounded, told = bad in BOUNDED.get(name, ()), name.partition(".")[0]
            message = refused(call, given, True)
            assert message is not None, f"{bad} in {name} was not refused"
            assert message.startswith(f"{told} must" if bounded else f"{told} must be finite"), (
                f"{bad} in {name}: {message}"
            )
            message = refused(call, given, False)
            if inverse or bounded:
                assert message is not None and message.startswith(name), f"{bad} in {name}: {message}"
            else:
                assert message is None, f"{bad} in {name}: {message}"


# ---------------------------------------------------------------- operators


def methods(subject, rng):
    """Method -> its arguments besides those of the operator."""
    n_out, n_in = subject.reference().shape[-2:]
    draw = lambda *shape: ref.normal(rng, *shape, dtype=subject.dtype)
    return {
        "matrix": {},
        "apply": {"x": draw(2, n_in)},
        "apply_adjoint": {"x": draw(2, n_out)},
        "apply_vjp": {"x": draw(2, n_in), "ct": draw(2, n_out)},
        "apply_adjoint_vjp": {"y": draw(2, n_out), "ct": draw(2, n_in)},
        "matrix_vjp": {"ct": draw(n_out, n_in)},
        **({"det": {}} if n_out == n_in else {}),
    }


def of_method(subject, method):
    def call(arguments, check_finite):
        held = {k: arguments[k] for k in subject.arguments}
        rest = [a for k, a in arguments.items() if k not in held]
        op = subject.with_arguments(**held).operator()
        if check_finite:  # a value accepted without the check is rejected by a later call with it
            getattr(op, method)(*rest, check_finite=False)
            getattr(op, method)(*rest)
        getattr(op, method)(*rest, check_finite=check_finite)

    return call


def test_methods(case, seed):
    subject = NumpySubject.draw(case, seed, N)
    for method, rest in methods(subject, seed).items():
        refuses(of_method(subject, method), {**subject.arguments, **rest})


# ---------------------------------------------------------------- functions


def of_cells(rng, dtype):
    """Of each cell the first variant of the field; the operator is a Householder, or fixed."""
    found = {}
    for stem, cell in CELLS.items():
        names = [name for name, kind in cell.variants.items() if is_complex(kind.dtype) == is_complex(dtype)]
        for name in names[:1]:
            subject, free = NumpyCell(CellCase(cell, name)), stem == "recurrence"
            options = subject.case.options("modrelu" if free else "tanh")
            single = real_of(dtype) is np.float32
            arrays = subject.case.draw(rng, N, activation=options.get("activation", "tanh"), single=single)
            own = {name: arrays.pop(name) for name in subject.case.own}
            arrays |= {"vectors": own["transition 0"]} if free else {}
            given = lambda a, own=own, free=free: (
                own | {"transition 0" if free and k == "vectors" else k: a[k] for k in a}
            )

            def call(a, c, subject=subject, options=options, given=given):
                return subject.states(given(a), check_finite=c, **options)

            def pull(a, c, subject=subject, options=options, given=given):
                given = given(a)
                results = map(subject.parts, (given.pop("states"), given.pop("ct")))
                return subject.pull(given, *results, check_finite=c, check_states=False, **options)

            ct = ref.normal(rng, 3, 2, N * len(cell.first), dtype=dtype)
            found[stem], found[f"{stem}_vjp"] = (arrays, call), ({**arrays, "states": ct, "ct": ct}, pull)
    return found


def functions(rng, dtype):
    """Public name -> arguments, and a call with them."""
    draw, found = Draw(rng, dtype), of_cells(rng, dtype)
    for name, entry in FUNCTIONS.items():
        if entry.checks and "numpy" in entry.faces and not (entry.real and draw.complex):
            function = partial(entry.of(NumpySubject.face, name), **entry.options)
            found[name] = entry.arrays(draw), lambda a, c, f=function: f(**a, check_finite=c)
    return {name: (arguments, call) for name, (arguments, call) in found.items() if arguments}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_functions(dtype, seed):
    for name, (arguments, call) in functions(seed, dtype).items():
        refuses(call, arguments, inverse=name.endswith("from_matrix"))


def test_no_function_is_left_out(seed):
    """Every public function and method with the keyword is called above."""
    takes = lambda f: inspect.isroutine(f) and "check_finite" in inspect.signature(f).parameters
    public = {name for name in iso.__all__ if takes(getattr(iso, name))}
    for module in (iso.linalg, iso.tasks, iso.metrics):
        names = [name for name in module.__all__ if name not in iso.__all__ and takes(getattr(module, name))]
        public |= {f"{module.__name__.rpartition('.')[2]}.{name}" for name in names}
    for cls in (getattr(iso, entry.cls) for entry in OBJECTS.values()):
        names = [name for name in dir(cls) if not name.startswith("_")]
        public |= {f"{cls.__name__}.{name}" for name in names if takes(getattr(cls, name))}
    every = methods(NumpySubject.draw(CASES[0], seed, N), seed)
    called = {name.partition(",")[0] for name in functions(seed, np.float64)} - set(every)
    called |= {f"{entry.cls}.{method}" for entry in OBJECTS.values() for method in every}
    assert called == public


# ---------------------------------------------------------------- torch


def propagates(subject, rng):
    """No argument is rejected, and non-finite values appear in the result."""
    n_out, n_in = subject.reference().shape[-2:]
    x, y = (ref.normal(rng, 2, n, dtype=subject.dtype) for n in (n_in, n_out))
    for name, a in {**subject.arguments, "x": x}.items():
        for bad in bad_values(a):
            if name in ("sign", "logits") and np.isinf(bad):
                continue  # out of its range, or the end of it
            wrong = spoiled(a, bad)
            if name == "x":
                results = [subject.apply(wrong)]
            else:
                op = subject.with_arguments(**{name: wrong})
                results = [op.matrix(), op.apply(x), op.apply_adjoint(y)]
            for result in results:
                assert not np.isfinite(result).all(), f"{bad} in {name} is lost"


def test_torch_lets_them_through(case, seed):
    propagates(TorchSubject.draw(case, seed, N), seed)
