"""Products of reflections for any tau, with matrices and alone, QR factorisations, nearest matrices; gradients."""

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Close, Numbers
from registry import is_complex, members
from subjects import fold

FLOOR = 1.0  # a factor may be zero


def linalg(choices, face):
    make = choices.of((product, product, multiply, multiply, factors, nearest))
    return draw.finished(choices, face, make(choices, face))


def drawn(choices, types, lead):
    """a and tau, sometimes fewer than a has columns, of batch shapes that broadcast to the given one."""
    m = draw.SMALL.size(choices)
    k = choices.between(0, m)
    given = choices.between(0, k) if choices.once_in(4) else k
    a, tau = types.numbers(*draw.part(choices, lead), m, k), types.numbers(*draw.part(choices, lead), given)
    a = a / a.dtype.type(m**0.5)
    if choices.once_in(3):  # factors without an inverse, or without effect
        size = 1 + np.square(np.abs(np.tril(a, -1))).sum(-2)[..., :given]
        tau = np.broadcast_to(choices.of((0, 1, 2)) / size, size.shape).astype(a.dtype)
    return a, tau, m, k


def sites(name, a, tau, m, k, **others):
    """The shapes that a, of this name, and tau may have; `others` are the shapes of further batches.

    Of a wide `input`, the a of torch's ormqr, the first columns are used.
    """
    leads = lambda **own: draw.broadcasts(*({"a": a.shape[:-2], "tau": tau.shape[:-1]} | others | own).values())
    rows = lambda shape: not others or shape[-2] == m
    tall = lambda s: s[-2] >= s[-1] or name == "input"
    of_a = lambda s: len(s) > 1 and tall(s) and min(s[-2:]) >= tau.shape[-1] and rows(s) and leads(a=s[:-2])
    of_tau = lambda s: len(s) > 0 and s[-1] <= k and leads(tau=s[:-1])
    blamed = f"{name}|tau|other"
    return {
        name: Numbers(2, of_a, {-1: blamed, -2: blamed}, precision=False),
        "tau": Numbers(1, of_tau),
    }


def dense(a, tau, lead):
    """Q of every member, and the bound of its rounding errors."""
    m = a.shape[-2]
    wide = spread(a, lead, 2), spread(tau, lead, 1)
    q, condition = np.zeros((*lead, m, m), complex), 1.0
    for index in members(lead):
        own = [np.linalg.norm(f, 2) for f in ref.reflector_factors(*(x[index] for x in wide))]
        condition = max(condition, np.prod([max(1.0, norm) for norm in own]))
        q[index] = ref.reflectors(*(x[index] for x in wide))
    return q, condition


def spread(x, lead, rank):
    return np.broadcast_to(x, (*lead, *x.shape[x.ndim - rank :]))


def pulled(a, tau, q_bar):
    """The gradients of a and tau, in their shapes."""
    lead = q_bar.shape[:-2]
    wide = spread(a, lead, 2), spread(tau, lead, 1)
    bars = [np.zeros(x.shape, complex) for x in wide]
    for index in members(lead):
        for bar, own in zip(bars, ref.reflectors_vjp(q_bar[index], *(x[index] for x in wide)), strict=True):
            bar[index] = own
    return [fold(bar, x.shape) for bar, x in zip(bars, (a, tau), strict=True)]


def close(value, like, tolerance):
    value = value if is_complex(like.dtype) else value.real
    return Close(value, like.dtype, tolerance, FLOOR)


def product(choices, face):
    types, first = draw.Types(choices, face), "A" if face.name == "torch" else "a"
    lead = draw.SMALL.leading(choices)
    a, tau, m, k = drawn(choices, types, lead)
    lead, dtype = np.broadcast_shapes(a.shape[:-2], tau.shape[:-1]), np.result_type(a, tau)
    q, condition = dense(a, tau, lead)
    within = draw.coarsest(a.dtype, tau.dtype)
    like = np.empty((*lead, m, k), dtype)
    call = Call(
        "linalg.householder_product",
        {first: a, "tau": tau},
        sites(first, a, tau, m, k),
        expected=lambda: {"value": close(q[..., :k], like, tol.forward(within, m + 4, condition))},
        wanted=(first, "tau"),
        complex=is_complex(dtype),
        sizes={"m": m, "k": k},
    )
    if choices.once_in(2):
        ct = draw.cotangent(choices, types, face, dtype, like.shape)
        wide = np.zeros((*lead, m, m), complex)
        wide[..., :k] = ct

        def grads():
            bars = pulled(a, tau, wide)
            bound = tol.gradient(draw.coarsest(within, ct.dtype), m + 4, condition) * (1 + np.linalg.norm(ct))
            return {key: close(bar, x, bound) for key, bar, x in zip((first, "tau"), bars, (a, tau), strict=True)}

        draw.pulled(call, ct, grads)
    return call


def multiply(choices, face):
    """From the left or from the right, plain or transposed."""
    types, first = draw.Types(choices, face), "input" if face.name == "torch" else "a"
    lead = draw.SMALL.leading(choices)
    a, tau, m, k = drawn(choices, types, lead)
    n, left, transpose = choices.between(0, 4), choices.once_in(2), choices.once_in(2)
    x = types.numbers(*draw.part(choices, lead), *((m, n) if left else (n, m)))
    lead = np.broadcast_shapes(a.shape[:-2], tau.shape[:-1], x.shape[:-2])
    dtype, within = np.result_type(a, tau, x), draw.coarsest(a.dtype, tau.dtype, x.dtype)
    q, condition = dense(a, tau, lead)
    p = np.conj(np.swapaxes(q, -1, -2)) if transpose else q
    out, wide = (p @ x if left else x @ p), ref.wide(spread(x, lead, 2))
    like, size = np.empty(out.shape, dtype), 1 + np.linalg.norm(x)
    axis, leads = (-2 if left else -1), (a.shape[:-2], tau.shape[:-1])
    fits = lambda s: len(s) > 1 and s[axis] == m and draw.broadcasts(s[:-2], *leads)
    call = Call(
        "linalg.ormqr",
        {first: a, "tau": tau, "other": x, "left": left, "transpose": transpose},
        {**sites(first, a, tau, m, k, other=x.shape[:-2]), "other": Numbers(2, fits)},
        expected=lambda: {"value": close(out, like, tol.forward(within, m + 4, condition) * size)},
        wanted=(first, "tau", "other"),
        complex=is_complex(dtype),
        sizes={"m": m, "k": k, "n": n},
    )
    if choices.once_in(2):
        ct = draw.cotangent(choices, types, face, dtype, out.shape)

        def grads():
            adjoint = lambda y: np.conj(np.swapaxes(y, -1, -2))
            outer = ref.wide(ct) @ adjoint(wide) if left else adjoint(wide) @ ref.wide(ct)
            bars = pulled(a, tau, adjoint(outer) if transpose else outer)
            bars.append(fold(adjoint(p) @ ct if left else ct @ adjoint(p), x.shape))
            bound = tol.gradient(draw.coarsest(within, ct.dtype), m + 4, condition) * size * (1 + np.linalg.norm(ct))
            given = zip((first, "tau", "other"), bars, (a, tau, x), strict=True)
            return {key: close(bar, own, bound) for key, bar, own in given}

        draw.pulled(call, ct, grads)
    return call


def factors(choices, face):
    """R and the vectors of any matrix: Q R is the matrix."""
    types, first = draw.Types(choices, face), "input" if face.name == "torch" else "a"
    shape = *draw.SMALL.leading(choices), draw.SMALL.size(choices), draw.SMALL.size(choices)
    # without structure, where the sign of beta may be that of a rounding error; Q R is compared by laws of its own
    x = ref.normal(choices.rng, *shape, dtype=types.pick())
    a, tau = np.zeros(x.shape, ref.wide(x).dtype), np.zeros((*x.shape[:-2], min(x.shape[-2:])), ref.wide(x).dtype)
    for index in members(x.shape[:-2]):
        a[index], tau[index] = ref.geqrf(x[index])
    # entries are known to eps times the condition of the columns before them
    bound = tol.forward(x.dtype, max(x.shape)) * max((spread_of(y) for y in x.reshape(-1, *x.shape[-2:])), default=1.0)
    return Call(
        "linalg.geqrf",
        {first: x},
        {first: Numbers(2, lambda s: len(s) > 1, precision=False)},
        expected=lambda: {"a": close(a, x, bound), "tau": close(tau, np.empty(tau.shape, x.dtype), bound)},
        wanted=(first,),
        complex=is_complex(x.dtype),
    )


def spread_of(x):
    """The largest condition of the leading columns of a matrix."""
    widths = range(1, min(x.shape) + 1)
    conditions = [np.linalg.cond(ref.wide(x)[:, :j]) for j in widths]
    return max((np.nan_to_num(c, nan=np.inf, posinf=np.inf) for c in conditions), default=1.0)


def nearest(choices, face):
    """The polar factor, or the nearest rotation, of matrices far from those that have several."""
    types = draw.Types(choices, face)
    m, n = draw.SMALL.size(choices), draw.SMALL.size(choices)
    special = choices.once_in(3)
    a = types.numbers(*draw.SMALL.leading(choices), m, m if special else n)
    special = special and not is_complex(a.dtype)
    batch = a.reshape(-1, *a.shape[-2:])
    spreads = [polar(x, special)[1:] for x in batch]
    if not all(condition < FAR for condition, _ in spreads):
        a = np.broadcast_to(np.eye(*a.shape[-2:], dtype=a.dtype), a.shape).copy()
        batch, spreads = a.reshape(-1, *a.shape[-2:]), [(1.0, 0.5)] * len(batch)
    condition = max((condition for condition, _ in spreads), default=1.0)
    bound = tol.forward(a.dtype, sum(a.shape[-2:]), condition)
    joined = lambda found: np.reshape([*found], a.shape)
    call = Call(
        "linalg.procrustes",
        {"a": a, "special": special},
        {"a": Numbers(2, lambda s: len(s) > 1 and (not special or s[-1] == s[-2]), precision=False)},
        expected=lambda: {"value": close(joined(polar(x, special)[0] for x in batch), a, bound)},
        wanted=("a",),
        complex=is_complex(a.dtype),
    )
    if choices.once_in(2):
        ct = draw.cotangent(choices, types, face, a.dtype, a.shape)
        cts = ref.wide(ct).reshape(batch.shape)
        most = max((1 / gap for _, gap in spreads), default=1.0)
        size = tol.gradient(draw.coarsest(a.dtype, ct.dtype), sum(a.shape[-2:]), condition) * (1 + np.linalg.norm(ct))
        bars = lambda: joined(polar_vjp(x, y, special) for x, y in zip(batch, cts, strict=True))
        draw.pulled(call, ct, lambda: {"a": close(bars(), a, size * most)})
    return call


FAR = 1e3


def polar(x, special):
    """W, and how far from singular x is: s_1 over the least sum s_i + s_j of its gradient, and that sum."""
    u, s, vh = decomposed(x, special)
    pair = len(s) > 1 and x.shape[0] == x.shape[1] and not is_complex(x.dtype)
    gap = s[-1] + s[-2] if pair else s[-1]
    return u @ vh, (s[0] / gap if gap > 0 else np.inf), gap


def decomposed(x, special):
    """U, S and V^H, with s_n and its column negated for a rotation."""
    u, s, vh = np.linalg.svd(ref.wide(x), full_matrices=False)
    if special and np.linalg.det(u @ vh).real < 0:
        u[:, -1], s[-1] = -u[:, -1], -s[-1]
    return u, s, vh


def polar_vjp(x, ct, special):
    """U [(X - X^H)_ij / (s_i + s_j)] V^H with X = U^H ct V, and for tall x (I - U U^H) ct V S^-1 V^H."""
    if x.shape[0] < x.shape[1]:
        return polar_vjp(x.conj().T, ct.conj().T, special).conj().T
    u, s, vh = decomposed(x, special)
    along = u.conj().T @ ct @ vh.conj().T
    across = along - along.conj().T
    sums = np.add.outer(s, s)
    out = u @ np.divide(across, sums, out=np.zeros_like(across), where=(across != 0) & (sums != 0)) @ vh
    if x.shape[0] > x.shape[1]:
        out = out + (ct - u @ (u.conj().T @ ct)) @ (vh.conj().T / s) @ vh
    return out
