"""The six recurrences: all states of a sequence, and back-propagation through time from these states.

Flops: a product of 2 n^2 T B if W is dense and two of them in backward; 4 n m T B and 8 n m T B if its m factors are
applied.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import isometry
from harness.row import Row
from harness.sizes import LONGEST_FACTORS, RECURRENCES, Sequences
from rows.numpy import formulas
from rows.numpy.sides import NUMPY, Array, Arrays, Side, half_signs, libraries, normal, rows_of

SLOPE = 0.1
# through up to 1020 steps; both precisions start backward from the same states, hence on the same side of every kink
TOLERANCE = (2e-4, 1e-3)

Route = Callable[[Arrays], Callable[[Array], Array]]


def rows() -> Iterator[Row]:
    for work in RECURRENCES:
        yield from make_rows(work)


def make_rows(work: Sequences) -> Iterator[Row]:
    flops = 2.0 * work.n * (work.n if work.route == "dense" else 2 * work.m) * work.batch * work.steps
    routes: dict[str, Route] = {"dense W": dense}
    if 0 < work.m <= LONGEST_FACTORS:
        routes["WY factors"] = factored
    return rows_of(
        str(work),
        partial(draw, work),
        forward,
        [Side(f"numpy loop, {name}", partial(loop, way)) for name, way in routes.items()],
        (flops, 2 * flops),
        back=back,
        tolerance=TOLERANCE,
        plan=work.route,
    )


def draw(work: Sequences, rng: np.random.Generator) -> Arrays:
    """A scoRNN has a square, its packed triangle and signs instead of reflection vectors."""
    n, m = work.n, work.m
    drawn = {"input_weight": normal(rng, n, work.inputs) * np.float32(0.1), "bias": np.zeros(n, np.float32)}
    if m == 0:
        square = normal(rng, n, n) * np.float32(0.05)
        drawn |= {"square": square, "upper": formulas.packed(square), "signs": half_signs(n)}
    else:
        drawn["vectors"] = np.tril(normal(rng, n, m))
    drawn |= {"x": normal(rng, work.steps, work.batch, work.inputs), "ct": normal(rng, work.steps, work.batch, n)}
    return drawn | {"states": forward(drawn)}


# ---------------------------------------------------------------- ours


def arguments(a: Arrays) -> tuple[isometry.Cayley | isometry.Householder, dict[str, Any]]:
    """The operator, rebuilt, and the arguments of the activation."""
    if "upper" in a:
        own = {"activation": "modrelu", "activation_bias": a["bias"]}
        return isometry.Cayley(a["upper"], signs=a["signs"]), own
    return isometry.Householder(a["vectors"]), {"activation": "leaky_relu", "bias": a["bias"], "slope": SLOPE}


def forward(a: Arrays) -> Array:
    operator, options = arguments(a)
    return isometry.recurrence(operator, a["x"], a["input_weight"], **options)


def back(a: Arrays) -> Arrays:
    operator, options = arguments(a)
    found = isometry.recurrence_vjp(operator, a["x"], a["input_weight"], a["states"], a["ct"], **options)
    return found.pop("transition") | {key: bar for key, bar in found.items() if bar is not None}


# ---------------------------------------------------------------- the peers


def dense(a: Arrays) -> Callable[[Array], Array]:
    """h -> h W^T on rows, W formed once."""
    w = formulas.cayley_inverse(NUMPY, a) if "square" in a else formulas.wy_matrix(libraries()[-1], a)
    transposed = np.ascontiguousarray(w.T)
    return lambda h: h @ transposed


def factored(a: Arrays) -> Callable[[Array], Array]:
    """The same for few reflections: h - (h U) (S^T U^T), 4 n m flops per row instead of 2 n^2."""
    u = a["vectors"]
    right = libraries()[-1].triangular(formulas.upper(u.T @ u), u.T, True)
    return lambda h: h - (h @ u) @ right


def loop(route: Route, a: Arrays) -> Array:
    """One product and the activation per step, written to the place of the state."""
    times_transposed = route(a)
    modrelu, bias = "square" in a, a["bias"]
    states = a["x"] @ a["input_weight"].T
    if not modrelu:
        states += bias
    h = np.zeros(states.shape[1:], states.dtype)
    for z in states:
        z += times_transposed(h)
        h = formulas.modrelu(z, bias, z) if modrelu else formulas.leaky_relu(z, SLOPE, z)
    return states
