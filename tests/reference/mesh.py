"""Meshes of 2 x 2 blocks: layers multiplied out as matrices."""

import numpy as np

from reference.cayley import last_factor
from reference.numbers import cotangent, product, wide


def mesh_pairs(n, layers=None, layout="brick", first="left"):
    """The pairs (i, j) of every layer, leftmost first, in the order of their angles."""
    if layout == "fft":
        depth = n.bit_length() - 1
        strides = [n // 2 ** (i + 1) for i in range(depth)]
        return [[(2 * p * k + j, 2 * p * k + p + j) for k in range(n // 2 // p) for j in range(p)] for p in strides]
    typed = [[(i, i + 1) for i in range(b, n - 1, 2)] for b in (0, 1)]
    return [typed[(layer if first == "left" else layers - 1 - layer) % 2] for layer in range(layers)]


def _block(theta, phi, change=None):
    """R^H of a pair, or its derivative in one of the angles."""
    s, c, e, zero = np.sin(theta), np.cos(theta), np.exp(-1j * phi), 0.0
    if change == "theta":
        return np.array([[c * e, -s], [-s * e, -c]])
    if change == "phi":
        return np.array([[-1j * s * e, zero], [-1j * c * e, zero]])
    return np.array([[s * e, c], [c * e, -s]])


def _factors(theta, n, phi, phases, signs, **plan):
    """D and the layers as matrices, and where the pairs of each stand."""
    pairs = mesh_pairs(n, **plan)
    theta, phi = wide(theta), np.zeros(len(theta)) if phi is None else wide(phi)
    factors, at = [last_factor(n, signs, phases).astype(complex)], 0
    for layer in pairs:
        f = np.eye(n, dtype=complex)
        for k, (i, j) in enumerate(layer, at):
            f[np.ix_((i, j), (i, j))] = _block(theta[k], phi[k])
        factors.append(f)
        at += len(layer)
    return factors, pairs, theta, phi


def mesh(theta, n, phi=None, phases=None, signs=None, **plan):
    """W = D F_1 F_2 ... F_L."""
    factors, *_ = _factors(theta, n, phi, phases, signs, **plan)
    w = product(factors, n)
    return w.real if phi is None and phases is None else w


def mesh_vjp(w_bar, theta, n, phi=None, phases=None, signs=None, **plan):
    """Each angle moves one block of one layer."""
    factors, pairs, angles, turns = _factors(theta, n, phi, phases, signs, **plan)
    names = ["theta"] if phi is None else ["theta", "phi"]
    grads, at = {name: np.zeros(len(angles)) for name in names}, 0
    for index, layer in enumerate(pairs, 1):
        own = cotangent(factors, index, w_bar)
        for k, (i, j) in enumerate(layer, at):
            for name in names:
                moved = _block(angles[k], turns[k], name)
                grads[name][k] = np.vdot(own[np.ix_((i, j), (i, j))], moved).real
        at += len(layer)
    if phases is not None:
        w = product(factors, n)
        grads["phases"] = np.imag(wide(w_bar) * w.conj()).sum(axis=1)
    return grads
