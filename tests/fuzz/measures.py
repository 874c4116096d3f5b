"""Real forms with their adjoints, the measure of orthogonality, the thread budget, and the tasks of the NumPy face."""

import itertools

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw, faults
from fuzz.call import Call, Close, Elementwise, Numbers, Seed
from registry import is_complex, members, real_of

EXACT = 0.0


def measures(choices, face):
    makers = [real_form, real_form, orthogonality, threads]
    if face.name == "numpy":
        makers += [adding, copying, permutations, one_hot, pixels]
    return draw.finished(choices, face, choices.of(makers)(choices, face))


# ---------------------------------------------------------------- real forms


def blocks(w):
    return np.concatenate([np.concatenate([w.real, -w.imag], -1), np.concatenate([w.imag, w.real], -1)], -2)


def top_and_bottom(v):
    return np.concatenate([v.real, v.imag], -2)


def left_blocks(r):
    p, q = r.shape[-2] // 2, r.shape[-1] // 2
    return r[..., :p, :q] + 1j * r[..., p:, :q]


def unblocked(ct):
    """The adjoint of `blocks`: the real part from the diagonal, the imaginary one from below minus above."""
    p, q = ct.shape[-2] // 2, ct.shape[-1] // 2
    real, imaginary = ct[..., :p, :q] + ct[..., p:, q:], ct[..., p:, :q] - ct[..., :p, q:]
    return real + 1j * imaginary


def unstacked(ct):
    n = ct.shape[-2] // 2
    return ct[..., :n, :] + 1j * ct[..., n:, :]


def in_the_left(ct):
    return np.concatenate([top_and_bottom(ct), np.zeros((*ct.shape[:-2], 2 * ct.shape[-2], ct.shape[-1]))], -1)


# function -> (its argument, rank of it, whether it takes a real form, value, adjoint)
FORMS = {
    "real_matrix": ("w", 2, False, blocks, unblocked),
    "real_state": ("z", 1, False, ref.as_real, ref.as_complex),
    "real_input": ("v", 2, False, top_and_bottom, unstacked),
    "complex_matrix": ("r", 2, True, left_blocks, in_the_left),
    "complex_state": ("r", 1, True, ref.as_complex, ref.as_real),
}


def real_form(choices, face):
    """One of the five conversions; in the torch face its gradient as well."""
    function = choices.of(list(FORMS))
    name, rank, doubled, value, adjoint = FORMS[function]
    types = draw.Types(choices, face)
    core = [choices.between(0, 4) * (2 if doubled else 1) for _ in range(rank)]
    a = types.numbers(*draw.SMALL.leading(choices), *core, real=doubled)
    out = value(ref.wide(a))
    dtype = np.result_type(a, np.complex64) if doubled else real_of(a.dtype)
    fits = lambda s: len(s) >= rank and not (doubled and any(k % 2 for k in s[-rank:]))
    call = Call(
        function,
        {name: a},
        {name: Numbers(rank, fits, real=doubled, precision=False)},
        expected=lambda: {"value": Close(out, dtype, EXACT)},
        checks=False,
    )
    if face.name == "torch" and choices.once_in(2):
        ct = ref.normal(choices.rng, *out.shape, dtype=dtype)
        pulled = adjoint(ref.wide(ct))
        call.wanted = (name,)
        precise = tol.forward(a.dtype, 1)
        own = pulled if is_complex(a.dtype) else pulled.real
        draw.pulled(call, ct, lambda: {name: Close(own, a.dtype, precise)})
    return call


# ---------------------------------------------------------------- one number each


def orthogonality(choices, face):
    """For arbitrary matrices, and for orthogonal ones in single precision, whose error is not that of the product."""
    types, lead = draw.Types(choices, face), draw.SMALL.leading(choices)
    p, n = choices.between(0, 5), choices.between(1, 5)
    w = types.numbers(*lead, p, n)
    if p >= n and real_of(w.dtype) is np.float32 and choices.once_in(2):
        w = np.linalg.qr(w)[0].astype(w.dtype)
    out = np.zeros(lead)
    for index in members(lead):
        out[index] = ref.orthogonality_error(w[index])
    dtype = np.dtype(float) if face.name == "numpy" else real_of(w.dtype)
    # The product W^H W is rounded in double precision, the result in its own.
    squares = np.square(np.abs(ref.wide(w))).sum(axis=-2).max(axis=-1, initial=0) + 1
    bound = tol.forward(dtype, 1) * out + tol.forward(np.float64, p) * squares / (n * tol.eps(w.dtype))
    fits = lambda s: len(s) > 1 and s[-1] > 0
    return Call(
        "orthogonality_error",
        {"w": w},
        {"w": Numbers(2, fits, precision=False)},
        expected=lambda: {"value": Elementwise(out, dtype, 1.0, bound)},
    )


def threads(choices, face):
    """The budget that was set is returned."""
    k = choices.between(1, 4)
    return Call(
        "set_num_threads",
        {"k": k},
        {},
        expected=lambda: {"value": Close(np.asarray(k), np.asarray(k).dtype, EXACT)},
        options=("k",),
        checks=False,
    )


# ---------------------------------------------------------------- tasks


def source(choices):
    """A seed and the generator that it stands for according to the documentation."""
    number = choices.below(256)
    return Seed(number), np.random.default_rng(number)


def task(function, arguments, *results, bound=EXACT, floor=1e-3, more=(), **own):
    """Its results, exact or within a bound; all its arguments but for arrays, and `more`, have tables of mistakes."""
    sites = own.get("sites", {})
    close = lambda a: Close(np.asarray(a), np.asarray(a).dtype, bound, floor)
    names = ("value",) if len(results) == 1 else ("in", "out")
    return Call(
        function,
        arguments,
        expected=lambda: dict(zip(names, map(close, results), strict=True)),
        options=tuple(k for k in {**arguments, **dict.fromkeys(more)} if k in faults.VALUES and k not in sites),
        **{"checks": bool(sites), **own},
    )


def adding(choices, face):
    rng, draws = source(choices)
    steps, batch, variant = choices.between(3, 9), choices.between(1, 4), choices.of(("halves", "half_open"))
    first, half = (0, steps // 2) if variant == "halves" else (1, (steps + 1) // 2)
    values = draws.random((steps, batch))
    i, j = draws.integers(first, half, batch), draws.integers(half, steps, batch)
    x, y = np.stack([values, np.zeros_like(values)], -1), np.zeros((batch, 1))
    for s in range(batch):
        x[[i[s], j[s]], s, 1] = 1
        y[s] = values[i[s], s] + values[j[s], s]
    given = {"variant": variant} if variant == "half_open" else {}
    return task("tasks.adding", {"steps": steps, "batch": batch, "rng": rng, **given}, x, y, more=("variant",))


def copying(choices, face):
    rng, draws = source(choices)
    steps, batch, offset = choices.between(1, 9), choices.between(1, 4), choices.of((1, 0))
    digits = draws.integers(1, 9, (10, batch))
    ids_in, ids_out = (np.zeros((steps + 20, batch), np.int64) for _ in range(2))
    ids_in[:10], ids_out[-10:] = digits, digits
    ids_in[steps + 10 - offset] = 9
    given = {"steps": steps, "batch": batch, "rng": rng, "marker_offset": offset}
    return task("tasks.copying", given, ids_in, ids_out)


def permutations(choices, face):
    rng, draws = source(choices)
    steps, batch, group = choices.between(1, 9), choices.between(1, 4), choices.of(("S3", "S2", "S5", "S4"))
    elements = list(itertools.permutations(range(int(group[1]))))
    ids, products = draws.integers(0, len(elements), (steps, batch)), np.zeros((steps, batch), np.int64)
    for b in range(batch):
        product = elements[0]
        for t in range(steps):
            product = tuple(elements[ids[t, b]][i] for i in product)
            products[t, b] = elements.index(product)
    given = {"steps": steps, "batch": batch, "rng": rng, **({"group": group} if group != "S3" else {})}
    return task("tasks.permutations", given, ids, products, more=("group",))


def one_hot(choices, face):
    classes = choices.between(1, 5)
    ids = choices.rng.integers(0, classes, draw.SMALL.leading(choices)).astype(choices.of(draw.INTEGERS))
    value = np.zeros((*ids.shape, classes))
    for index in members(ids.shape):
        value[(*index, ids[index])] = 1
    return task("tasks.one_hot", {"ids": ids, "classes": classes}, value, sizes={"classes": classes})


def pixels(choices, face):
    batch, height, width = choices.between(0, 3), choices.between(0, 4), choices.between(0, 4)
    types = draw.Types(choices, face)
    images = choices.rng.integers(0, 256, (batch, height, width)).astype(types.pick(real=True))
    images = images.astype(np.uint8) if choices.once_in(2) else images
    order = choices.rng.permutation(height * width).astype(choices.of(draw.INTEGERS)) if choices.once_in(2) else None
    flat = ref.wide(images).reshape(batch, height * width)
    value = (flat if order is None else flat[:, order]).T[..., None] / 255
    fits = lambda s: len(s) == 3 and (order is None or s[1] * s[2] == height * width)
    site = {"images": Numbers(3, fits, dict.fromkeys((-1, -2), "permutation"), real=True)}
    given = {"images": images, **({} if order is None else {"permutation": order})}
    own = {"sites": site if images.dtype != np.uint8 else {}, "checks": True, "sizes": {"pixels": height * width}}
    return task("tasks.pixels", given, value, bound=tol.forward(np.float64, 1), **own)
