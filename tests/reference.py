"""Textbook NumPy in double precision, directly from the definitions; slow, plain and independent of the package.

Arrays in are widened to float64 or complex128. An operator W is one matrix (n_out, n_in); states are rows, C = H W^T.
The gradient of a real loss L in z = x + i y is dL/dx + i dL/dy: Re sum conj(p_bar) dp = Re sum conj(c_bar) dc.
"""

import numpy as np


def wide(a):
    a = np.asarray(a)
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


# ---------------------------------------------------------------- products of reflections


def reflection(u):
    """H(u) = I - 2 u u^H / ||u||^2."""
    return np.eye(len(u)) - 2 * np.outer(u, u.conj()) / np.vdot(u, u).real


def householder_factors(vectors, sign=None, phases=None):
    """H(U[:,0]), ..., H(U[:,m-1]) and the last factor diag(1, ..., 1, s) or diag(e^{i phases}), if there is one."""
    u = wide(vectors)
    n, m = u.shape
    factors = [reflection(u[:, j]) for j in range(m)]
    if sign is not None:
        factors.append(np.diag([1.0] * (n - 1) + [float(sign)]))
    if phases is not None:
        factors.append(np.diag(np.exp(1j * wide(phases))))
    return factors


def householder(vectors, sign=None, phases=None):
    """W = H(U[:,0]) ... H(U[:,m-1]) E, one factor at a time."""
    w = np.eye(np.shape(vectors)[0])
    for factor in householder_factors(vectors, sign, phases):
        w = w @ factor
    return w


def reflection_vjp(u, g):
    """u_bar for the cotangent g of H(u): with N = ||u||^2, -2/N (g u + g^H u) + 4/N^2 Re(u^H g u) u."""
    norm = np.vdot(u, u).real
    return -2 / norm * (g @ u + g.conj().T @ u) + 4 / norm**2 * np.vdot(u, g @ u).real * u


def householder_vjp(w_bar, vectors, sign=None, phases=None):
    """The product rule: the cotangent of factor j is L^H W_bar R^H with L, R the products left and right of it."""
    u, factors = wide(vectors), householder_factors(vectors, sign, phases)
    n, m = u.shape

    def cotangent(j):
        left, right = np.eye(n), np.eye(n)
        for factor in factors[:j]:
            left = left @ factor
        for factor in factors[j + 1 :]:
            right = right @ factor
        return left.conj().T @ wide(w_bar) @ right.conj().T

    columns = [reflection_vjp(u[:, j], cotangent(j)) for j in range(m)]
    grads = {"vectors": np.stack(columns, axis=1) if m else np.zeros((n, 0))}
    if sign is not None:
        grads["sign"] = cotangent(m)[n - 1, n - 1].real
    if phases is not None:
        grads["phases"] = np.imag(np.diag(cotangent(m)) * np.exp(-1j * wide(phases)))
    return grads


# ---------------------------------------------------------------- scaled Cayley transform


def size_of_packed(length):
    """n with n (n - 1) / 2 = length."""
    return round((1 + np.sqrt(1 + 8 * length)) / 2)


def skew(upper, diagonal=None):
    """A[i,j] = upper row by row, A[j,i] = -conj(A[i,j]), A[j,j] = i diagonal[j]."""
    upper = wide(upper)
    n = size_of_packed(len(upper))
    a = np.zeros((n, n), upper.dtype)
    a[np.triu_indices(n, 1)] = upper
    a = a - a.conj().T
    return a if diagonal is None else a + 1j * np.diag(wide(diagonal))


def last_factor(n, signs=None, phases=None):
    if phases is not None:
        return np.diag(np.exp(1j * wide(phases)))
    return np.eye(n) if signs is None else np.diag(wide(signs))


def cayley(upper, diagonal=None, signs=None, phases=None):
    """W = (I + A)^{-1} (I - A) D by one solve."""
    a = skew(upper, diagonal)
    i = np.eye(len(a))
    return np.linalg.solve(i + a, i - a) @ last_factor(len(a), signs, phases)


def cayley_vjp(w_bar, upper, diagonal=None, signs=None, phases=None):
    """A_bar = -2 S^H W_bar D^H S^H with S = (I + A)^{-1}; returns the packed gradients."""
    a, w_bar = skew(upper, diagonal), wide(w_bar)
    s = np.linalg.inv(np.eye(len(a)) + a)
    d = last_factor(len(a), signs, phases)
    a_bar = -2 * s.conj().T @ w_bar @ d.conj().T @ s.conj().T
    above = np.triu_indices(len(a), 1)
    grads = {"upper": a_bar[above] - a_bar.T.conj()[above]}
    if diagonal is not None:
        grads["diagonal"] = np.diag(a_bar).imag
    if phases is not None:
        grads["phases"] = np.imag(w_bar * cayley(upper, diagonal, signs, phases).conj()).sum(axis=0)
    return grads


# ---------------------------------------------------------------- dense matrices


def dense(weight):
    return wide(weight)


def dense_vjp(w_bar, weight):  # noqa: ARG001  every *_vjp takes the cotangent, then the arguments
    return {"weight": wide(w_bar)}


# ---------------------------------------------------------------- activations

NAMES = ("identity", "tanh", "relu", "leaky_relu", "oplu", "oplu_halves", "modrelu", "modrelu_realrep")


def pairs(n, name):
    """The two index lists that OPLU compares."""
    first = np.arange(0, n, 2) if name == "oplu" else np.arange(n // 2)
    return first, first + (1 if name == "oplu" else n // 2)


def on_parts(function, z, *rest):
    """A real activation on the real and the imaginary part separately."""
    if z.dtype.kind != "c":
        return function(z, *rest)
    return function(z.real, *(r.real for r in rest)) + 1j * function(z.imag, *(r.imag for r in rest))


def as_complex(a):
    half = a.shape[-1] // 2
    return a[..., :half] + 1j * a[..., half:]


def as_real(z):
    return np.concatenate([z.real, z.imag], axis=-1)


def activate(z, name, bias=None, slope=0.1):
    z = wide(z)
    if name == "modrelu_realrep":
        return as_real(activate(as_complex(z), "modrelu", bias))
    if name == "modrelu":
        r = np.abs(z)
        active = (r + bias > 0) & (z != 0)
        return np.where(active, (r + bias) * z / np.where(z != 0, r, 1), 0)
    if name in ("oplu", "oplu_halves"):
        i, j = pairs(z.shape[-1], name)

        def sort(a):
            out = a.copy()
            out[..., i], out[..., j] = np.maximum(a[..., i], a[..., j]), np.minimum(a[..., i], a[..., j])
            return out

        return on_parts(sort, z)
    values = {
        "identity": lambda a: a,
        "tanh": np.tanh,
        "relu": lambda a: np.maximum(a, 0),
        "leaky_relu": lambda a: np.maximum(slope * a, a),
    }
    return on_parts(values[name], z)


def activate_vjp(z, name, ct, bias=None, slope=0.1):
    """(z_bar, bias_bar or None)."""
    z, ct = wide(z), wide(ct)
    if name == "modrelu_realrep":
        z_bar, bias_bar = activate_vjp(as_complex(z), "modrelu", as_complex(ct), bias)
        return as_real(z_bar), bias_bar
    if name == "modrelu":
        r = np.abs(z)
        active = (r + bias > 0) & (z != 0)
        r = np.where(active, r, 1)
        e = z / r
        along = np.real(e.conj() * ct)
        z_bar = np.where(active, ct + bias / r * (ct - e * along), 0)
        return z_bar, np.where(active, along, 0).sum(axis=tuple(range(z.ndim - 1)))
    if name in ("oplu", "oplu_halves"):
        i, j = pairs(z.shape[-1], name)

        def unsort(a, g):
            out, swapped = g.copy(), a[..., i] < a[..., j]
            out[..., i] = np.where(swapped, g[..., j], g[..., i])
            out[..., j] = np.where(swapped, g[..., i], g[..., j])
            return out

        return on_parts(unsort, z, ct), None
    slopes = {
        "identity": np.ones_like,
        "tanh": lambda a: 1 - np.tanh(a) ** 2,
        "relu": lambda a: (a > 0).astype(float),
        "leaky_relu": lambda a: np.where(a > 0, 1.0, slope),
    }
    return on_parts(lambda a, g: slopes[name](a) * g, z, ct), None


# ---------------------------------------------------------------- the plain recurrent layer


def order_of_steps(length, reverse):
    return range(length - 1, -1, -1) if reverse else range(length)


def preactivation(w, x, v, h, b):
    """z_t = W h_{t-1} + V x_t + b for one sequence, its two terms separately."""
    return w @ h, v @ x + (0 if b is None else b)


def recurrence(
    w, x, v, h0=None, bias=None, activation="tanh", activation_bias=None, slope=0.1, activation_on="all",
    lengths=None, reverse=False,
):  # fmt: skip
    """States (T, B, n), one sequence and one step at a time."""
    w, x, v = wide(w), wide(x), wide(v)
    steps, batch, n = len(x), x.shape[1], len(w)
    parts = [a for a in (w, x, v, h0, bias) if a is not None]
    states = np.zeros((steps, batch, n), np.result_type(*map(wide, parts)))
    for s in range(batch):
        h = initial(h0, s, n)
        for t in order_of_steps(steps if lengths is None else lengths[s], reverse):
            hidden, drive = preactivation(w, x[t, s], v, h, bias)
            if activation_on == "all":
                h = activate(hidden + drive, activation, activation_bias, slope)
            else:
                h = hidden + activate(drive, activation, activation_bias, slope)
            states[t, s] = h
    return states


def initial(h0, s, n):
    if h0 is None:
        return np.zeros(n)
    return wide(h0) if np.ndim(h0) == 1 else wide(h0)[s]


def recurrence_vjp(
    w, x, v, ct, h0=None, bias=None, activation="tanh", activation_bias=None, slope=0.1, activation_on="all",
    lengths=None, reverse=False,
):  # fmt: skip
    """Back-propagation through time: a dict with "w", "x", "input_weight", "h0", "bias", "activation_bias"."""
    w, x, v, ct = wide(w), wide(x), wide(v), wide(ct)
    steps, batch, n = len(x), x.shape[1], len(w)
    states = recurrence(w, x, v, h0, bias, activation, activation_bias, slope, activation_on, lengths, reverse)
    kind = np.result_type(states, ct)
    w_bar, x_bar, v_bar = np.zeros(w.shape, kind), np.zeros(x.shape, kind), np.zeros(v.shape, kind)
    h0_bar, b_bar = np.zeros((batch, n), kind), np.zeros(n, kind)
    a_bar = None if activation_bias is None else np.zeros(np.shape(activation_bias))
    for s in range(batch):
        order = list(order_of_steps(steps if lengths is None else lengths[s], reverse))
        g = np.zeros(n, kind)
        for k in range(len(order) - 1, -1, -1):
            t, g = order[k], g + ct[order[k], s]
            before = states[order[k - 1], s] if k else initial(h0, s, n)
            hidden, drive = preactivation(w, x[t, s], v, before, bias)
            z = hidden + drive if activation_on == "all" else drive + np.zeros(n, kind)
            drive_bar, bias_bar = activate_vjp(z[None], activation, g[None], activation_bias, slope)
            drive_bar = drive_bar[0]
            hidden_bar = drive_bar if activation_on == "all" else g
            w_bar += np.outer(hidden_bar, before.conj())
            v_bar += np.outer(drive_bar, x[t, s].conj())
            b_bar += drive_bar
            x_bar[t, s] = v.conj().T @ drive_bar
            g = w.conj().T @ hidden_bar
            if a_bar is not None:
                a_bar += bias_bar
        h0_bar[s] = g
    if h0 is not None and np.ndim(h0) == 1:
        h0_bar = h0_bar.sum(axis=0)
    return {"w": w_bar, "x": x_bar, "input_weight": v_bar, "h0": h0_bar, "bias": b_bar, "activation_bias": a_bar}


# ---------------------------------------------------------------- measures and draws


def orthogonality_error(w):
    """max|W^H W - I| / (n eps) for one matrix in its own precision."""
    eps, w = np.finfo(np.asarray(w).dtype).eps, wide(w)
    return np.abs(w.conj().T @ w - np.eye(w.shape[1])).max() / (w.shape[1] * eps)


def normal(rng, *shape, dtype=np.float64):
    """Standard normal draws; complex ones have both parts standard normal."""
    z = rng.standard_normal(shape)
    return (z + 1j * rng.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else z.astype(dtype)


def haar(rng, n, dtype=np.float64):
    """QR of a Gaussian matrix, Q times the phases of diag(R)."""
    q, r = np.linalg.qr(normal(rng, n, n, dtype=np.result_type(dtype, np.float64)))
    return (q * (np.diag(r) / np.abs(np.diag(r)))).astype(dtype)


def slope_along(function, ct, step=1e-3):
    """d/dt Re sum conj(ct) function(t) at t = 0 by the five-point rule, error O(step^4)."""
    value = lambda t: np.vdot(ct, function(t)).real
    return (value(-2 * step) - 8 * value(-step) + 8 * value(step) - value(2 * step)) / (12 * step)
