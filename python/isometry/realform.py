"""Complex arrays as real ones: z -> [Re z | Im z], W -> [[Re W, -Im W], [Im W, Re W]], V -> [Re V; Im V], and back.

W is unitary iff its image is orthogonal; the images are exactly the real matrices that commute with [[0, -I], [I, 0]].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, complex_type, taken, taken_real
from isometry._rules import check


def real_matrix(w: ArrayLike) -> Array:
    """Return the real form of a complex matrix.

    Parameters
    ----------
    w
        W, shape (*, p, q).

    Returns
    -------
    numpy.ndarray
        [[Re W, -Im W], [Im W, Re W]], real, shape (*, 2p, 2q).

    Raises
    ------
    ValueError
        If w has fewer than two axes.
    TypeError
        If w has an unsupported dtype.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.real_matrix([[1 + 2j]])
    array([[ 1., -2.],
           [ 2.,  1.]])
    """
    w = taken("w", w)
    check.stack("w", w.shape, 2, "(*, p, q)")
    return np.concatenate([np.concatenate([w.real, -w.imag], -1), np.concatenate([w.imag, w.real], -1)], -2)


def real_state(z: ArrayLike) -> Array:
    """Return the real form of complex states.

    Parameters
    ----------
    z
        Shape (..., n).

    Returns
    -------
    numpy.ndarray
        [Re z | Im z], real, shape (..., 2n).

    Raises
    ------
    ValueError
        If z has no axis.
    TypeError
        If z has an unsupported dtype.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.real_state([1 + 2j, 3 + 4j])
    array([1., 3., 2., 4.])
    """
    z = taken("z", z)
    check.stack("z", z.shape, 1, "(..., n)")
    return np.concatenate([z.real, z.imag], -1)


def real_input(v: ArrayLike) -> Array:
    """Return the real form of a complex input matrix that acts on real input.

    Parameters
    ----------
    v
        V, shape (*, n, d).

    Returns
    -------
    numpy.ndarray
        [Re V; Im V], real, shape (*, 2n, d). For complex input in its real form use `real_matrix`.

    Raises
    ------
    ValueError
        If v has fewer than two axes.
    TypeError
        If v has an unsupported dtype.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.real_input([[1 + 2j, 3 + 4j]])
    array([[1., 3.],
           [2., 4.]])
    """
    v = taken("v", v)
    check.stack("v", v.shape, 2, "(*, n, d)")
    return np.concatenate([v.real, v.imag], -2)


def complex_matrix(r: ArrayLike) -> Array:
    """Return the complex matrix of a real form; the inverse of `real_matrix`.

    Parameters
    ----------
    r
        Real, shape (*, 2p, 2q). Only its left half is read.

    Returns
    -------
    numpy.ndarray
        Complex, shape (*, p, q).

    Raises
    ------
    ValueError
        If r has fewer than two axes or an odd size.
    TypeError
        If r is complex or has an unsupported dtype.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.complex_matrix([[1.0, -2.0], [2.0, 1.0]])
    array([[1.+2.j]])
    """
    r = taken_real("r", r)
    check.real_form(r.shape, 2)
    p, q = r.shape[-2] // 2, r.shape[-1] // 2
    return _joined(r[..., :p, :q], r[..., p:, :q])


def complex_state(r: ArrayLike) -> Array:
    """Return the complex states of a real form; the inverse of `real_state`.

    Parameters
    ----------
    r
        Real, shape (..., 2n).

    Returns
    -------
    numpy.ndarray
        Complex, shape (..., n).

    Raises
    ------
    ValueError
        If r has no axis or an odd number of features.
    TypeError
        If r is complex or has an unsupported dtype.

    Examples
    --------
    >>> import isometry as iso
    >>> iso.complex_state([1.0, 3.0, 2.0, 4.0])
    array([1.+2.j, 3.+4.j])
    """
    r = taken_real("r", r)
    check.real_form(r.shape, 1)
    n = r.shape[-1] // 2
    return _joined(r[..., :n], r[..., n:])


def _joined(real: Array, imaginary: Array) -> Array:
    out = np.empty(real.shape, complex_type(real.dtype))
    out.real, out.imag = real, imaginary
    return out
