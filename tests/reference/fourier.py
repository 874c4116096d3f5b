"""The restricted-capacity unitary matrix."""

import functools

import numpy as np

from reference.householder import reflection, reflection_vjp
from reference.numbers import wide


def fourier_factors(phases, vectors, permutation):
    """D3, R2, F^-1, D2, P, R1, F, D1 as matrices."""
    theta, v, n = wide(phases), wide(vectors), np.shape(vectors)[-1]
    first, middle, last = (np.diag(np.exp(1j * angles)) for angles in theta)
    k = np.arange(n)
    transform = np.exp(-2j * np.pi * (np.outer(k, k) % n) / n) / np.sqrt(n)
    permuted = np.eye(n)[np.asarray(permutation)]
    return [
        last,
        reflection(v[1]),
        transform.conj().T,
        middle,
        permuted,
        reflection(v[0]),
        transform,
        first,
    ]


def fourier(phases, vectors, permutation):
    """W = D3 R2 F^-1 D2 P R1 F D1."""
    return functools.reduce(np.matmul, fourier_factors(phases, vectors, permutation))


def fourier_vjp(w_bar, phases, vectors, permutation):
    """The product rule: the cotangent of a factor is L^H W_bar R^H with L, R the products left and right of it."""
    factors, v = fourier_factors(phases, vectors, permutation), wide(vectors)
    n = v.shape[-1]

    def cotangent(j):
        left, right = (functools.reduce(np.matmul, some, np.eye(n)) for some in (factors[:j], factors[j + 1 :]))
        return left.conj().T @ wide(w_bar) @ right.conj().T

    angles = lambda j: np.imag(np.diag(cotangent(j)) * np.diag(factors[j]).conj())
    return {
        "phases": np.stack([angles(7), angles(3), angles(0)]),
        "vectors": np.stack([reflection_vjp(v[0], cotangent(5)), reflection_vjp(v[1], cotangent(1))]),
    }
