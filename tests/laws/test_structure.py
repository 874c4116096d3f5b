"""Arguments with structure: zeros, copies, blocks, signs and scales, at sizes on both sides of every threshold.

What holds of every one of them is known without a reference: W is finite, orthogonal where the object promises it, and
`apply` is the product with it; a member of a stack has the results that it has alone, whatever the others are. The
reference's W and gradients are those of the registry.
"""

import itertools

import numpy as np
import pytest

import reference as ref
from registry import gathered, is_complex, real_of
from support import structure
from support.sizes import SHARED, sizes
from tolerance import FLOOR, UNITARITY, close, forward, gradient, sequence

#: Entries of these overflow in products of two arguments in single precision.
HUGE = ("huge_column", "huge_entry")


def flushed(a):
    """Denormal numbers count as zero."""
    parts = [np.where(np.abs(x) < np.finfo(a.dtype).tiny, 0, x) for x in (a.real, a.imag)]
    return (parts[0] + 1j * parts[1] if is_complex(a.dtype) else parts[0]).astype(a.dtype)


def redrawn(subject, rng, kind, *names):
    """The subject with these arguments of a class."""
    changes = {}
    for name in names:
        a = subject.arguments[name]
        new = flushed(structure.draw(kind, rng, a.shape, a.dtype, rng.choice(["random", "none", "quarter"])))
        changes[name] = np.clip(new, -1, 1) if name == "sign" else new
    return subject.with_arguments(**changes)


def free(subject):
    """The arguments that may have any values."""
    fixed = subject.case.object.fixed
    return [name for name in subject.arguments if name not in fixed]


def named_zero(subject):
    """An argument in which a direction has no norm, or one that leaves the range of its type: those are refused."""
    for name, argument in subject.case.object.arguments.items():
        if name in subject.arguments and argument.directions and argument.refused:
            a = np.abs(ref.wide(subject.arguments[name]))
            axis = -2 if subject.case.stem == "householder" else -1
            with np.errstate(over="ignore", under="ignore"):
                squares = (a**2).sum(axis)
            limits = np.finfo(subject.arguments[name].dtype)
            if ((squares <= 4 * limits.tiny) | (squares >= limits.max / 4)).any():
                return name
    return None


def structured(subject, rng, rows="dense"):
    """W, its products and all gradients; without a reference as far as that goes."""
    w, dtype = subject.matrix(), subject.dtype
    assert np.isfinite(w).all(), "W is not finite"
    if subject.invertible:
        error = ref.orthogonality_error(w) / max(subject.case.kind.growth, 1)
        assert error <= UNITARITY, f"e(W) = {error:.3g}"
    wide, tolerance = ref.wide(w), forward(dtype, subject.factors)
    x, y = (flushed(structure.draw(rows, rng, (3, n), dtype)) for n in w.shape[::-1])
    norm, least = np.linalg.norm(wide), float(np.finfo(dtype).tiny) / tolerance
    for what, found, expected, given in (
        ("apply", subject.apply(x), x @ wide.T, x),
        ("apply_adjoint", subject.apply_adjoint(y), y @ wide.conj(), y),
    ):
        floor = norm * np.linalg.norm(ref.wide(given)) + least
        close(found, expected, tolerance, what, floor)
    with np.errstate(all="ignore"):
        expected = subject.reference()
        condition = max(1.0, float(subject.case.object.condition(**gathered(subject.arguments))))
    if not np.isfinite(expected).all() or not condition < 1e6:
        return
    close(w, expected, tolerance * condition, "matrix", least)
    slopes(subject, rng, x, condition)


def slopes(subject, rng, x, condition):
    """The gradients, which are finite where those of the reference are."""
    ct = ref.normal(rng, len(x), subject.reference().shape[-2], dtype=subject.dtype)
    with np.errstate(all="ignore"):
        expected, expected_x = subject.reference_apply_vjp(x, ct)
    grads, x_bar = subject.apply_vjp(x, ct)
    tolerance, most = gradient(subject.dtype, subject.factors, condition), float(np.finfo(subject.dtype).max)
    size = FLOOR * float(np.linalg.norm(ct)) * float(np.linalg.norm(ref.wide(x))) + 1e-3
    close(x_bar, expected_x, tolerance, "x_bar", np.linalg.norm(expected_x) + 1e-3)
    for name, g in grads.items():
        if np.abs(expected[name]).max(initial=0) < most / 4:
            close(g, expected[name], tolerance, f"gradient of {name}", size)


def beyond(subject):
    """Whether W is refused since I + A of a Cayley transform is lost in double precision."""
    try:
        subject.matrix()
    except ValueError as error:
        assert "1/eps of float64" in str(error), str(error)
        return True
    return False


def examine(subject, rng, kind, *names):
    """The law on one draw, or the refusal of a direction without a norm."""
    subject = redrawn(subject, rng, kind, *names)
    zero = named_zero(subject)
    if zero is None:
        if beyond(subject):
            assert kind in structure.SCALED
            return
        structured(subject, rng, kind if kind not in structure.SCALED else "dense")
        return
    try:
        w = subject.matrix()
    except ValueError as error:
        assert zero in str(error), str(error)
    else:  # near the ends of the range
        assert ref.orthogonality_error(w) <= UNITARITY * max(subject.case.kind.growth, 1), f"{zero} has no direction"


def everywhere(subject, rng, kind):
    """The law with all arguments of one class."""
    examine(subject, rng, kind, *free(subject))


def sweep(make, case, kinds, rng, most):
    """A class at a size each, in one argument or in all of them."""
    shared = [n for n in sizes(*SHARED) if n <= max(17, most // 2)]
    own = sorted(n for n in {*sizes(case.stem), *shared} if 3 <= n <= most)
    turn = itertools.count(int(rng.integers(len(own))))
    for kind in kinds:
        if kind in HUGE and real_of(case.dtype) is np.float32 and not case.object.declaration.unitary:
            continue
        subject = make(own[next(turn) % len(own)])
        names = free(subject)
        chosen = names if rng.integers(3) == 0 else [names[rng.integers(len(names))]]
        try:
            examine(subject, rng, kind, *chosen)
        except AssertionError as error:
            raise AssertionError(f"{kind} in {chosen}, n = {subject.n}: {error}") from error


@pytest.mark.cpu
def test_structured_arguments(make, case, seed):
    """A third of the classes; other dtypes and the other face draw others."""
    kinds = seed.permutation(list(structure.CLASSES))
    sweep(make, case, kinds[: len(kinds) // 3], seed, 33)


# ---------------------------------------------------------------- recurrences


def over_time(subject, rng, *kinds):
    """Inputs, weights, biases and states of these classes: the reference's states and gradients."""
    n, dtype = subject.n, subject.dtype
    shapes = {"x": (4, 3, 2), "v": (n, 2), "h0": (3, n), "bias": (n,), "ct": (4, 3, n)}
    drawn = {name: structure.draw(rng.choice(kinds), rng, shape, dtype) for name, shape in shapes.items()}
    x, v, ct = (drawn.pop(name) for name in ("x", "v", "ct"))
    keywords = {**drawn, "activation": rng.choice(["tanh", "identity"]).item()}
    w = ref.wide(subject.matrix())
    scale = max(1.0, float(np.linalg.norm(w, 2)))
    tolerance = sequence(dtype, subject.factors, len(x)) * scale ** len(x)
    expected = ref.recurrence(w, x, v, **keywords)
    close(subject.recurrence(x, v, **keywords), expected, tolerance, "states", 1.0)
    found, expected = subject.recurrence_vjp(x, v, ct, **keywords), ref.recurrence_vjp(w, x, v, ct, **keywords)
    size = 1e-3 + float(np.linalg.norm(ct)) * (1 + max(float(np.linalg.norm(a)) for a in (x, v, *drawn.values())))
    for name in ("x", "input_weight", "h0", "bias"):
        close(found[name], expected[name], 4 * tolerance, f"gradient of {name}", size)
    for name, g in found["transition"].items():
        assert np.isfinite(g).all(), f"the gradient of {name} is not finite"


@pytest.mark.cpu
def test_structured_sequences(make, case, seed):
    kinds = [kind for kind in structure.CLASSES if kind not in structure.SCALED]
    own = sizes(case.stem)
    for n in seed.choice([n for n in own if n <= 17], 3):
        over_time(make(int(n)), seed, *seed.choice(kinds, 3))


test_structured_sequences.select = lambda case: case.square

# ---------------------------------------------------------------- stacks


def results(subject, x, ct):
    """Of an operator by name: W, W x, and gradients."""
    grads, x_bar = subject.apply_vjp(x, ct)
    return {"matrix": subject.matrix(), "apply": subject.apply(x), "x_bar": x_bar, **grads}


def apart(subject, rng):
    """Members of different classes: each has its own results, and keeps them where another one holds NaN."""
    (count,) = subject.batch_shape
    kinds = [k for k in structure.CLASSES if k not in structure.SCALED]
    drawn = {name: a.copy() for name, a in subject.arguments.items()}
    for k in range(count):
        one = subject.with_arguments(**subject.member((k,)))
        name = free(one)[rng.integers(len(free(one)))]
        one = redrawn(one, rng, kinds[rng.integers(len(kinds))], name)
        if named_zero(one) is None:
            drawn[name][k] = one.arguments[name]
    subject = subject.with_arguments(**drawn)
    n_out, n_in = subject.matrix().shape[-2:]
    x, ct = (ref.normal(rng, 2, count, n, dtype=subject.dtype) for n in (n_in, n_out))
    whole = results(subject, x, ct)
    for k in range(count):
        alone = results(subject.with_arguments(**subject.member((k,))), x[:, k], ct[:, k])
        for what, value in alone.items():
            own = whole[what][:, k] if what in ("apply", "x_bar") else whole[what][k]
            close(own, value, gradient(subject.dtype, subject.factors), f"{what} of member {k}", subject.floor(ct))
    name, bad = free(subject)[0], int(rng.integers(count))
    spoiled = drawn[name].copy()
    spoiled[bad].reshape(-1)[-1] = np.nan
    after = results(subject.unchecked().with_arguments(**{name: spoiled}), x, ct)
    for k in set(range(count)) - {bad}:
        for what, value in whole.items():
            at = (slice(None), k) if what in ("apply", "x_bar") else (k,)
            close(after[what][at], value[at], gradient(subject.dtype, subject.factors), f"{what} beside NaN")


@pytest.mark.cpu
def test_members_of_a_stack_keep_apart(make, seed):
    for n, count in ((4, 3), (9, 17)):
        apart(make(n, (count,)), seed)
