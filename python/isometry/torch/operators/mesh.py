"""`Mesh` on tensors; the definition is in `isometry._objects.mesh`."""

from __future__ import annotations

import math
from typing import Literal, Unpack

import torch
from torch import Tensor

from ..._arrays import Array
from ..._inverse import mesh as inverse
from ..._objects import mesh
from ..._objects.mesh import MESH, Sized
from ..._rules import check
from ..formulas import mesh as formula
from ._declared import Declared
from ._inverse import keywords, matrices, stack
from ._operator import tensor
from ._random import Draw, Drawing, stackable


class Mesh(Sized, Declared, declaration=MESH, matrix=formula.matrix, apply=formula.apply):
    """A mesh of 2 x 2 blocks on pairs of coordinates, the transition of the EURNN.

    W = D F_1 F_2 ... F_L, layers of blocks of which F_L acts first. A block on the pair i < j is

    y_i = sin(theta) e^{-i phi} x_i + cos(theta) x_j,   y_j = cos(theta) e^{-i phi} x_i - sin(theta) x_j.

    W is orthogonal, or unitary, for all angles. A brick mesh of n layers with phi and phases reaches every unitary
    matrix.

    Use it with few layers, where W x costs 3 n L operations, and for interferometers. Do not use it to fit a matrix to
    data: for n = 16 L-BFGS leaves 1e-7 after 3,000 iterations, for `Householder` 1e-15 after 300.

    Parameters
    ----------
    theta : Tensor, shape (*, P)
        Angles: one per pair, the leftmost layer first, pairs ascending within a layer.
    n : int
        Size of W.
    layers : int, optional
        L >= 1, the capacity of a brick mesh; P = ceil(L/2) floor(n/2) + floor(L/2) floor((n-1)/2). May be left
        out for a whole mesh, of n layers and P = n (n - 1) / 2, and with layout "fft".
    layout : {"brick", "fft"}
        "brick": layers of the pairs (0, 1), (2, 3), ... and of (1, 2), (3, 4), ... in turn. "fft": log2 n layers of n/2
        pairs at the distances n/2, n/4, ..., 1; n is a power of two.
    phi : Tensor, shape (*, P), optional
        Angles; they make W complex.
    phases : Tensor, shape (*, n), optional
        Angles of D = diag(e^{i phases}); they make W complex.
    signs : Tensor, shape (*, n), optional
        Fixed entries +1 or -1 of D, in place of phases. Without either D is the identity.
    first : {"left", "right"}
        Whether F_1 or F_L has the pairs (0, 1), (2, 3), ...

    Raises
    ------
    ValueError
        A length that does not fit, layers < 1, n not a power of two in the fft layout, signs other than +-1 if values
        can be read, or signs given with phases.
    TypeError
        Arguments that are not real tensors of the same precision.

    See Also
    --------
    Givens : rotations at any pairs.
    isometry.torch.nn.EURNN, isometry.torch.nn.GORU : the layers with such a matrix.
    :doc:`choosing` : all operators, with what they reach and cost.

    Notes
    -----
    `*` is an optional batch shape, of meshes of one layout; those of the arguments broadcast. A row costs 3 n L
    operations, 9 n L if complex; its backward four times as many, without an array per layer: layers are inverted one
    by one from the result.

    References
    ----------
    Jing et al.: Tunable efficient unitary neural networks (EUNN) and their application to RNNs, ICML 2017.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> op = it.Mesh(torch.tensor([0.0, torch.pi / 2, 0.0]), n=4, layers=2)
    >>> op
    Mesh(n=4, layers=2, dtype=torch.float32)
    >>> op.apply(torch.tensor([1.0, 2.0, 3.0, 4.0])).round()
    tensor([ 3.,  1.,  2., -4.])
    """

    __slots__ = ()

    theta: Tensor
    phi: Tensor | None
    phases: Tensor | None
    signs: Tensor | None

    def __init__(
        self,
        theta: Tensor,
        *,
        n: int,
        layers: int | None = None,
        layout: Literal["brick", "fft"] = "brick",
        phi: Tensor | None = None,
        phases: Tensor | None = None,
        signs: Tensor | None = None,
        first: Literal["left", "right"] = "left",
    ) -> None:
        self._hold(mesh.frame(n, layers, layout, first, tuple(getattr(theta, "shape", ()))), theta, phi, phases, signs)

    @property
    def pairs(self) -> Tensor:
        """The rows (i, j) that each angle of theta turns, integers of shape (P, 2), in its order."""
        return torch.from_numpy(inverse.pairs(*self.frame.shape[:3])).to(self.theta.device)

    @classmethod
    def from_matrix(
        cls, w: Tensor, *, first: Literal["left", "right"] = "left", nearest: bool = False, tol: float | None = None
    ) -> Mesh:
        """The brick mesh of n layers that is an orthogonal or unitary matrix; not differentiable.

        Parameters
        ----------
        w : Tensor, shape (*, n, n)
            Orthogonal (real: the mesh has signs) or unitary (complex: it has phi and phases).
        first : {"left", "right"}
            Whether F_1 or F_n has the pairs (0, 1), (2, 3), ...
        nearest : bool
            Project w first, by `linalg.procrustes`: any w will do, and `tol` refuses none.
        tol : float, optional
            The largest entry of |W^H W - I| accepted, by default n sqrt(eps).

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Mesh.from_matrix(torch.eye(4)[[1, 2, 3, 0]])
        Mesh(n=4, layers=4, last='signs', dtype=torch.float32)
        """
        check.choice("first", first, "left", "right")
        w, bound = matrices(w, nearest, tol)
        n = w.shape[-1]
        return cls(**keywords(inverse.arguments(stack(w), first, bound), w), n=n, layers=n, first=first)

    @classmethod
    def from_clements(
        cls,
        theta: Tensor,
        phi: Tensor,
        phases: Tensor | None = None,
        *,
        n: int,
        first: Literal["left", "right"] = "left",
    ) -> Mesh:
        """The brick mesh of n layers of angles in the convention of Clements et al. (2016); differentiable.

        W = diag(e^{i phases}) F_1 F_2 ... F_n, whose blocks on pairs i < j are those of their equation (1),

        y_i = e^{i phi} cos(theta) x_i - sin(theta) x_j,   y_j = e^{i phi} sin(theta) x_i + cos(theta) x_j.

        Parameters
        ----------
        theta, phi : Tensor, shape (*, n (n - 1) / 2)
            One per pair, in the order of `pairs`.
        phases : Tensor, shape (*, n), optional
            The angles of the diagonal, by default zero.
        n : int
            Size of W.
        first : {"left", "right"}
            Whether F_1 or F_n has the pairs (0, 1), (2, 3), ...; in the figures of the paper these act first: "right".

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> op = it.Mesh.from_clements(torch.tensor([0.5]), torch.zeros(1), torch.zeros(2), n=2)
        >>> op.apply(torch.eye(2)[0]).real
        tensor([0.8776, 0.4794])
        """
        given = cls(theta, n=n, layers=n, phi=tensor("phi", phi), phases=phases, first=first)
        assert given.phi is not None
        turns, last = inverse.half_turns(*given.frame.shape[:3])
        zero = given.theta.new_zeros(())
        return cls(
            given.theta + math.pi / 2,
            n=n,
            layers=n,
            phi=_turned(-given.phi, turns),
            phases=_turned(zero if given.phases is None else given.phases, last),
            first=first,
        )

    def clements(self) -> tuple[Tensor, Tensor, Tensor]:
        """theta (*, P), phi (*, P) and phases (*, n) in the convention of `from_clements`; differentiable.

        Of a brick mesh of any number of layers; a ValueError in the fft layout. Signs become phases 0 and pi; phi or
        phases that the mesh lacks are zero.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> op = it.Mesh.random(3, layers=3, dtype=torch.complex64)
        >>> again = it.Mesh.from_clements(*op.clements(), n=3)
        >>> torch.allclose(again.matrix(), op.matrix(), atol=1e-5)
        True
        """
        mesh.brick_only(self.layout)
        turns, last = inverse.half_turns(*self.frame.shape[:3])
        zero, phases = self.theta.new_zeros(()), self.phases
        if self.signs is not None:
            phases = (self.signs < 0).to(self.theta.dtype) * math.pi
        found = (
            self.theta - math.pi / 2,
            _turned(zero if self.phi is None else -self.phi, turns),
            _turned(zero if phases is None else phases, -last),
        )
        theta, phi, phases = [a.expand(*self.batch_shape, a.shape[-1]) for a in found]
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
        """All angles uniform on [-pi, pi).

        Not the Haar measure, under which all matrices are equally likely: `Householder.haar`.

        Parameters
        ----------
        n : int
            Size.
        layers : int, optional
            L of a brick mesh.
        layout, first : str
            As above.
        generator : torch.Generator, optional
            Source of the numbers, by default torch's own.
        dtype : torch.dtype, optional
            By default `torch.get_default_dtype()`; a complex mesh has phi and phases too.
        device : torch.device, optional
            Where the arrays are made.
        batch_shape : sequence of int, optional
            The shape of the stack, by default () for one operator; its members are drawn one after another.

        Examples
        --------
        >>> import torch, isometry.torch as it
        >>> it.Mesh.random(8, layout="fft", generator=torch.Generator().manual_seed(0))
        Mesh(n=8, layers=3, layout='fft', dtype=torch.float32)
        """
        size, depth, kind, _ = mesh.frame(n, layers, layout, first)
        draw, pairs = Draw(options), mesh.count(size, depth, kind)
        theta, phi, phases = draw.angles(pairs), None, None
        if draw.dtype.is_complex:
            phi, phases = draw.angles(pairs), draw.angles(size)
        return cls(theta, n=size, layers=depth, layout=layout, phi=phi, phases=phases, first=first)


def _turned(angles: Tensor, half_turns: Array) -> Tensor:
    return angles + math.pi * torch.from_numpy(half_turns).to(angles)
