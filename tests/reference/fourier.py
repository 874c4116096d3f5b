"""The restricted-capacity unitary matrix."""

import numpy as np

from reference.householder import reflection, reflection_vjp
from reference.numbers import cotangent, product, wide


def fourier_factors(phases, vectors, permutation):
    """D3, R2, F^-1, D2, P, R1, F, D1 as matrices."""
    theta, v, n = wide(phases), wide(vectors), np.shape(vectors)[-1]
    first, middle, last = (np.diag(np.exp(1j * angles)) for angles in theta)
    k = np.arange(n)
    transform = np.exp(-2j * np.pi * (np.outer(k, k) % n) / n) / np.sqrt(n)
    permuted = np.eye(n)[np.asarray(permutation)]
    return [last, reflection(v[1]), transform.conj().T, middle, permuted, reflection(v[0]), transform, first]


def fourier(phases, vectors, permutation):
    """W = D3 R2 F^-1 D2 P R1 F D1."""
    return product(fourier_factors(phases, vectors, permutation), np.shape(vectors)[-1])


def fourier_vjp(w_bar, phases, vectors, permutation):
    factors, v = fourier_factors(phases, vectors, permutation), wide(vectors)
    own = lambda j: cotangent(factors, j, w_bar)
    angles = lambda j: np.imag(np.diag(own(j)) * np.diag(factors[j]).conj())
    return {
        "phases": np.stack([angles(7), angles(3), angles(0)]),
        "vectors": np.stack([reflection_vjp(v[0], own(5)), reflection_vjp(v[1], own(1))]),
    }
