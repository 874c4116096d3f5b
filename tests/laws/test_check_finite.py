"""NaN and infinity: an error that names the argument in the NumPy face, accepted with check_finite off and in the
torch face."""

import inspect
from functools import partial

import numpy as np
import pytest

import isometry as iso
import reference as ref
from faces import NumpySubject, TorchSubject
from registry import CASES, DTYPES, OBJECTS, is_complex, real_of
from registry.cells import CELLS, CellCase
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


def layer(rng, dtype):
    """A Householder and the arguments of a recurrence of it."""
    draw = lambda *shape: ref.normal(rng, *shape, dtype=dtype)
    arguments = {"vectors": draw(N, 2), "x": draw(3, 2, 2), "input_weight": draw(N, 2), "h0": draw(2, N)}
    return arguments | {"bias": draw(N), "activation_bias": ref.normal(rng, N, dtype=real_of(dtype))}


def run(function, a, *results, **more):
    rest = {k: a[k] for k in ("h0", "bias", "activation_bias")}
    op = iso.Householder(a["vectors"])
    return function(op, a["x"], a["input_weight"], *results, activation="modrelu", **rest, **more)


def skew(rng, dtype):
    a = ref.normal(rng, N, N, dtype=dtype)
    return a - a.conj().T


def delta_rules(draw):
    """The delta rule is real."""
    rows = {"q": draw(1, 3, 1, N), "k": draw(1, 3, 1, N), "v": draw(1, 3, 1, N), "beta": draw(1, 3, 1)}
    cts = {"o_bar": draw(1, 3, 1, N), "state_bar": draw(1, 1, N, N)}
    return {
        "delta_rule": (rows, lambda a, c: iso.delta_rule(**a, check_finite=c)),
        "delta_rule_vjp": (rows | cts, lambda a, c: iso.delta_rule_vjp(**a, check_finite=c)),
    }


def of_cells(rng, dtype):
    """The other cells are real; their operators are those of `recurrence`."""
    found = {}
    for stem, cell in CELLS.items():
        if stem == "recurrence":
            continue
        subject = NumpyCell(CellCase(cell, next(iter(cell.variants))))
        arrays = subject.case.draw(rng, N, single=np.dtype(dtype) == np.float32)
        fixed = {name: arrays.pop(name) for name in subject.case.own}
        ct = ref.normal(rng, 3, 2, N * len(cell.first), dtype=dtype)

        def call(subject, fixed, a, c):
            return subject.states({**fixed, **a}, check_finite=c)

        def pull(subject, fixed, a, c):
            given = {**fixed, **a}
            results = given.pop("states"), given.pop("ct")
            return subject.pull(given, *map(subject.parts, results), check_finite=c, check_states=False)

        found[stem] = arrays, partial(call, subject, fixed)
        found[f"{stem}_vjp"] = {**arrays, "states": ct, "ct": ct}, partial(pull, subject, fixed)
    return found


def functions(rng, dtype):
    """Public name -> arguments, and a call with them."""
    draw = lambda *shape: ref.normal(rng, *shape, dtype=dtype)
    real = lambda *shape: ref.normal(rng, *shape, dtype=real_of(dtype))
    w, z = ref.cayley(draw(N * (N - 1) // 2)).astype(dtype), {"z": draw(2, N)}
    bias, results = {"bias": real(N)}, {"states": draw(3, 2, N), "ct": draw(3, 2, N)}
    last = {"phases": real(N)} if is_complex(dtype) else {"signs": np.ones(N, dtype)}
    return {
        "activate": (z | bias, lambda a, c: iso.activate(a["z"], "modrelu", bias=a["bias"], check_finite=c)),
        "activate_vjp": (
            {**z, "ct": draw(2, N), **bias},
            lambda a, c: iso.activate_vjp(a["z"], "modrelu", a["ct"], bias=a["bias"], check_finite=c),
        ),
        "cayley_step": (
            {"w": w, "gradient": draw(N, N)},
            lambda a, c: iso.cayley_step(a["w"], a["gradient"], 0.1, check_finite=c),
        ),
        "hadamard_transform": ({"x": draw(2, N)}, lambda a, c: iso.hadamard_transform(**a, check_finite=c)),
        **({} if is_complex(dtype) else delta_rules(draw) | of_cells(rng, dtype)),
        "orthogonality_error": ({"w": w}, lambda a, c: iso.orthogonality_error(**a, check_finite=c)),
        "recurrence": (layer(rng, dtype), lambda a, c: run(iso.recurrence, a, check_finite=c)),
        "recurrence_vjp": (
            layer(rng, dtype) | results,
            lambda a, c: run(iso.recurrence_vjp, a, a["states"], a["ct"], check_finite=c, check_states=False),
        ),
        "Householder.from_matrix": ({"w": w}, lambda a, c: iso.Householder.from_matrix(**a, check_finite=c)),
        "Cayley.from_matrix": ({"w": w, **last}, lambda a, c: iso.Cayley.from_matrix(**a, check_finite=c)),
        "Exponential.from_matrix": ({"w": w}, lambda a, c: iso.Exponential.from_matrix(**a, check_finite=c)),
        "Mesh.from_matrix": ({"w": w}, lambda a, c: iso.Mesh.from_matrix(**a, check_finite=c)),
        "Kronecker.from_matrix": (
            {"w": np.kron(w, w[:2])},
            lambda a, c: iso.Kronecker.from_matrix(**a, factor_sizes=[w.shape, (2, w.shape[1])], check_finite=c),
        ),
        "Cayley.from_rotvec": ({"rotvec": real(3)}, lambda a, c: iso.Cayley.from_rotvec(**a, check_finite=c)),
        "Exponential.from_rotvec": ({"rotvec": real(3)}, lambda a, c: iso.Exponential.from_rotvec(**a, check_finite=c)),
        "Cayley.from_quat": ({"quat": real(4)}, lambda a, c: iso.Cayley.from_quat(**a, check_finite=c)),
        "Exponential.from_quat": ({"quat": real(4)}, lambda a, c: iso.Exponential.from_quat(**a, check_finite=c)),
        "Cayley.from_skew": ({"a": skew(rng, dtype)}, lambda a, c: iso.Cayley.from_skew(**a, check_finite=c)),
        "Exponential.from_skew": (
            {"a": skew(rng, dtype)},
            lambda a, c: iso.Exponential.from_skew(**a, check_finite=c),
        ),
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_functions(dtype, seed):
    for name, (arguments, call) in functions(seed, dtype).items():
        refuses(call, arguments, inverse=name.endswith("from_matrix"))


def test_no_function_is_left_out(seed):
    """Every public function and method with the keyword is called above."""
    takes = lambda f: inspect.isroutine(f) and "check_finite" in inspect.signature(f).parameters
    public = {name for name in iso.__all__ if takes(getattr(iso, name))}
    for cls in (getattr(iso, entry.cls) for entry in OBJECTS.values()):
        names = [name for name in dir(cls) if not name.startswith("_")]
        public |= {f"{cls.__name__}.{name}" for name in names if takes(getattr(cls, name))}
    called = set(functions(seed, np.float64))
    every = methods(NumpySubject.draw(CASES[0], seed, N), seed)
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
