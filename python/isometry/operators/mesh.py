"""`Mesh` on NumPy arrays; the definition is in `isometry._objects.mesh`."""

from __future__ import annotations

from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from isometry._arrays import Array, taken
from isometry._inverse import mesh as inverse
from isometry._objects import mesh
from isometry._objects.mesh import MESH, Sized
from isometry._rules import check
from isometry.operators._declared import Declared
from isometry.operators._inverse import matrices, unstacked
from isometry.operators._random import Draw, Drawing, stackable


class Mesh(Sized, Declared, declaration=MESH):
    """A mesh of 2 x 2 blocks on pairs of coordinates, the transition of the EURNN.

    W = D F_1 F_2 ... F_L, F_L acts first. Every layer F_l consists of blocks on disjoint pairs i < j,

    y_i = sin(theta) e^{-i phi} x_i + cos(theta) x_j,   y_j = cos(theta) e^{-i phi} x_i - sin(theta) x_j.

    W is orthogonal, or unitary, for all angles. A brick mesh of n layers with phi and phases reaches every unitary
    matrix.

    Use it with few layers, where W x costs 3 n L operations, and for interferometers. Do not use it to fit a matrix to
    data: for n = 16 L-BFGS leaves 1e-7 after 3,000 iterations, for `Householder` 1e-15 after 300.

    Parameters
    ----------
    theta
        Angles in radians, shape (*, P): one per pair, the leftmost layer first, pairs ascending within a layer.
    n
        Size of W.
    layers
        L >= 1, the capacity of a brick mesh; P = ceil(L/2) floor(n/2) + floor(L/2) floor((n-1)/2). May be left
        out for a whole mesh, of n layers and P = n (n - 1) / 2, and with layout "fft".
    layout
        "brick": layers of the pairs (0, 1), (2, 3), ... and of (1, 2), (3, 4), ... in turn. "fft": log2 n layers of n/2
        pairs at the distances n/2, n/4, ..., 1; n is a power of two.
    phi
        Angles, shape (*, P). They make W complex.
    phases
        Angles, shape (*, n): D = diag(e^{i phases}). They make W complex.
    signs
        Fixed entries +1 or -1 of D, shape (*, n), in place of phases. Without either D is the identity.
    first
        "left": F_1 has the pairs (0, 1), (2, 3), ...; "right": F_L has them.

    Attributes
    ----------
    theta, phi, phases, signs, n, layers, layout, first
        The arguments; None for arrays that were not given. `layers` is log2 n in the fft layout.

    Raises
    ------
    ValueError
        If a length does not fit, layers < 1, n is not a power of two in the fft layout, signs are not +-1, or signs and
        phases are both given.
    TypeError
        If an array has an unsupported dtype, or is complex.

    See Also
    --------
    Givens : rotations at any pairs.
    isometry.torch.nn.EURNN, isometry.torch.nn.GORU : the layers with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape, of meshes of one layout; those of the arguments broadcast against each other.
    Blocks of a real mesh are reflections: det W = (-1)^P prod(signs). `apply` costs 3 n L operations per row, 9 n L
    if complex; `apply_vjp` four times as many, without an array per layer: layers are inverted one by one from the
    result.

    References
    ----------
    Jing et al.: Tunable efficient unitary neural networks (EUNN) and their application to RNNs, ICML 2017.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> op = iso.Mesh([0.0, np.pi / 2, 0.0], n=4, layers=2)
    >>> op
    Mesh(n=4, layers=2, dtype=float64)
    >>> op.apply([1.0, 2.0, 3.0, 4.0]).round(12)
    array([ 3.,  1.,  2., -4.])
    """

    __slots__ = ()

    theta: Array
    phi: Array | None
    phases: Array | None
    signs: Array | None

    def __init__(
        self,
        theta: ArrayLike,
        *,
        n: int,
        layers: int | None = None,
        layout: Literal["brick", "fft"] = "brick",
        phi: ArrayLike | None = None,
        phases: ArrayLike | None = None,
        signs: ArrayLike | None = None,
        first: Literal["left", "right"] = "left",
    ) -> None:
        angles = theta if hasattr(theta, "shape") else taken("theta", theta)
        self._hold(mesh.frame(n, layers, layout, first, tuple(angles.shape)), theta, phi, phases, signs)

    @property
    def pairs(self) -> Array:
        """The rows (i, j) that each angle of theta turns, integers of shape (P, 2), in its order."""
        return inverse.pairs(*self.frame.shape[:3])

    @classmethod
    def from_matrix(
        cls,
        w: ArrayLike,
        *,
        first: Literal["left", "right"] = "left",
        nearest: bool = False,
        tol: float | None = None,
        check_finite: bool = True,
    ) -> Mesh:
        """Recover the angles of a brick mesh of n layers from an orthogonal or unitary matrix.

        The decomposition of Clements et al.: every orthogonal matrix is such a mesh with signs, every unitary one with
        phi and phases. Takes n (n - 1) / 2 steps of 6 n operations, each of them several calls of NumPy.

        Parameters
        ----------
        w
            Shape (*, n, n), orthogonal (real) or unitary (complex).
        first
            Whether F_1 or F_n has the pairs (0, 1), (2, 3), ...
        nearest
            Project w first: `linalg.procrustes`. Then any w will do, and `tol` refuses none.
        tol
            The largest entry of |W^H W - I| that is accepted; default n sqrt(eps).
        check_finite
            Reject NaN and infinity in w.

        Returns
        -------
        Mesh
            With signs if w is real, with phi and phases if it is complex.

        Raises
        ------
        ValueError
            If w is not square or not orthogonal (unitary) within tol, or tol is negative or NaN.

        References
        ----------
        Clements, Humphreys, Metcalf, Kolthammer, Walmsley: Optimal design for universal multiport interferometers,
        Optica 2016.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Mesh.from_matrix(np.eye(4)[[1, 2, 3, 0]])
        >>> op
        Mesh(n=4, layers=4, last='signs', dtype=float64)
        >>> op.apply([1.0, 2.0, 3.0, 4.0]).round(12)
        array([2., 3., 4., 1.])
        """
        check.choice("first", first, "left", "right")
        q, batch, bound = matrices(w, nearest, tol, check_finite)
        n = q.shape[-1]
        return cls(**unstacked(inverse.arguments(q, first, bound), batch), n=n, layers=n, first=first)

    @classmethod
    def from_clements(
        cls,
        theta: ArrayLike,
        phi: ArrayLike,
        phases: ArrayLike | None = None,
        *,
        n: int,
        first: Literal["left", "right"] = "left",
    ) -> Mesh:
        """Build a brick mesh of n layers from angles in the convention of Clements et al. (2016).

        W = diag(e^{i phases}) F_1 F_2 ... F_n, whose blocks on pairs i < j are those of their equation (1),

        y_i = e^{i phi} cos(theta) x_i - sin(theta) x_j,   y_j = e^{i phi} sin(theta) x_i + cos(theta) x_j.

        Parameters
        ----------
        theta, phi
            Shape (*, n (n - 1) / 2): one per pair, in the order of `pairs`.
        phases
            Shape (*, n); zero by default.
        n
            Size of W.
        first
            Whether F_1 or F_n has the pairs (0, 1), (2, 3), ...; in the figures of the paper these act first: "right".

        Returns
        -------
        Mesh
            With phi and phases; multiples of pi / 2 are added to all angles.

        Raises
        ------
        ValueError
            If a length does not fit.
        TypeError
            If an array has an unsupported dtype, or is complex.

        Examples
        --------
        >>> import isometry as iso
        >>> op = iso.Mesh.from_clements([0.5], [0.0], [0.0, 0.0], n=2)
        >>> op.apply([1.0, 0.0]).real.round(3)
        array([0.878, 0.479])
        """
        given = cls(theta, n=n, layers=n, phi=taken("phi", phi), phases=phases, first=first)
        assert given.phi is not None
        turns, last = inverse.half_turns(*given.frame.shape[:3])
        zero = np.zeros((), given.theta.dtype)
        return cls(
            given.theta + given.theta.dtype.type(np.pi / 2),
            n=n,
            layers=n,
            phi=_turned(-given.phi, turns),
            phases=_turned(zero if given.phases is None else given.phases, last),
            first=first,
        )

    def clements(self) -> tuple[Array, Array, Array]:
        """The angles in the convention of `from_clements`, of a brick mesh of any number of layers.

        Returns
        -------
        theta, phi, phases : ndarray
            Shapes (*, P), (*, P) and (*, n). Signs become phases 0 and pi; phi or phases that the mesh lacks are zero.

        Raises
        ------
        ValueError
            In the fft layout.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Mesh.random(3, layers=3, dtype="complex128")
        >>> again = iso.Mesh.from_clements(*op.clements(), n=3)
        >>> np.allclose(again.matrix(), op.matrix())
        True
        """
        mesh.brick_only(self.layout)
        turns, last = inverse.half_turns(*self.frame.shape[:3])
        zero, phases = np.zeros((), self.theta.dtype), self.phases
        if self.signs is not None:
            phases = np.where(self.signs < 0, np.pi, 0).astype(self.signs.dtype)
        found = (
            self.theta - self.theta.dtype.type(np.pi / 2),
            _turned(zero if self.phi is None else -self.phi, turns),
            _turned(zero if phases is None else phases, -last),
        )
        theta, phi, phases = [np.broadcast_to(a, (*self.batch_shape, a.shape[-1])).copy() for a in found]
        return theta, phi, phases

    @classmethod
    @stackable
    def random(
        cls,
        n: int,
        *,
        layers: int | None = None,
        layout: Literal["brick", "fft"] = "brick",
        first: Literal["left", "right"] = "left",
        **options: Unpack[Drawing],
    ) -> Mesh:
        """Draw all angles uniformly from [-pi, pi).

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n
            Size of the matrix.
        layers, layout, first
            As above.
        rng
            A `numpy.random.Generator`, or a seed.
        dtype
            float32, float64, complex64 or complex128; a complex mesh has phi and phases too.
        batch_shape
            The shape of the stack, () for one operator; its members are drawn one after another.

        Returns
        -------
        Mesh
            Of shape (n, n).

        Raises
        ------
        ValueError
            If the sizes are out of range.
        TypeError
            If the dtype is not supported.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Mesh.random(8, layout="fft", rng=0, dtype="complex64")
        Mesh(n=8, layers=3, layout='fft', last='phases', dtype=complex64)
        """
        size, depth, kind, _ = mesh.frame(n, layers, layout, first)
        draw, pairs = Draw(options), mesh.count(size, depth, kind)
        theta, phi, phases = draw.angles(pairs), None, None
        if draw.dtype.kind == "c":
            phi, phases = draw.angles(pairs), draw.angles(size)
        return cls(theta, n=size, layers=depth, layout=layout, phi=phi, phases=phases, first=first)


def _turned(angles: Array, half_turns: Array) -> Array:
    return angles + half_turns.astype(angles.dtype) * angles.dtype.type(np.pi)
