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
# through up to 1020 steps; all sides start backward from the same states, hence on the same side of every kink
TOLERANCE = (2e-4, 1e-3)

Product = Callable[[Array], Array]
Route = Callable[[Arrays], tuple[Product, Product]]


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
        Side("isometry", forward, back),
        [Side(f"numpy loop, {name}", partial(loop, way), partial(loop_vjp, way)) for name, way in routes.items()],
        (flops, 2 * flops),
        pick={"transition": formulas.packed} if work.m == 0 else {},
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
    (transition,) = found["transition"].values()
    bias = found["activation_bias" if "upper" in a else "bias"]
    return {"transition": transition, "x": found["x"], "input_weight": found["input_weight"], "bias": bias}


# ---------------------------------------------------------------- the peers


def dense(a: Arrays) -> tuple[Product, Product]:
    """h -> h W^T and z -> z W on rows, W formed once."""
    w = formulas.cayley_inverse(NUMPY, a) if "square" in a else formulas.wy_matrix(libraries()[-1], a)
    transposed = np.ascontiguousarray(w.T)
    return lambda h: h @ transposed, lambda z: z @ w


def factored(a: Arrays) -> tuple[Product, Product]:
    """The same for few reflections: h - (h U) (S^T U^T), 4 n m flops per row instead of 2 n^2."""
    u, library = a["vectors"], libraries()[-1]
    t = formulas.upper(u.T @ u)
    right, left = (library.triangular(t, u.T, transposed) for transposed in (True, False))
    return lambda h: h - (h @ u) @ right, lambda z: z - (z @ u) @ left


def loop(route: Route, a: Arrays) -> Array:
    """One product and the activation per step, written to the place of the state."""
    times_transposed, _ = route(a)
    modrelu, bias = "square" in a, a["bias"]
    states = a["x"] @ a["input_weight"].T
    if not modrelu:
        states += bias
    h = np.zeros(states.shape[1:], states.dtype)
    for z in states:
        z += times_transposed(h)
        h = formulas.modrelu(z, bias, z) if modrelu else formulas.leaky_relu(z, SLOPE, z)
    return states


def loop_vjp(route: Route, a: Arrays) -> Arrays:
    """z_bar step by step, then one product per gradient; a state determines on which side of a kink it is."""
    _, times = route(a)
    modrelu, states = "square" in a, a["states"]
    real = states.dtype.type
    slopes = (states != 0).astype(real) if modrelu else np.where(states < 0, real(SLOPE), real(1))
    z_bars, g = np.empty_like(states), np.zeros(states.shape[1:], real)
    for t in range(len(states) - 1, -1, -1):
        g += a["ct"][t]
        g = times(np.multiply(g, slopes[t], out=z_bars[t]))
    w_bar = flat(z_bars[1:]).T @ flat(states[:-1])
    of_w, library = (formulas.cayley_inverse_vjp, NUMPY) if modrelu else (formulas.wy_matrix_vjp, libraries()[-1])
    (transition,) = of_w(library, a | {"ct": w_bar}).values()
    return {
        "transition": transition,
        "x": z_bars @ a["input_weight"],
        "input_weight": flat(z_bars).T @ flat(a["x"]),
        "bias": flat(np.sign(states) * z_bars if modrelu else z_bars).sum(0),
    }


def flat(a: Array) -> Array:
    """(T, B, k) as (T B, k)."""
    return a.reshape(-1, a.shape[-1])
