"""What all operators share: c = W x on rows, the adjoint W^H, and their vector-Jacobian products.

Broadcasting, promotion, finiteness and the shape of each gradient are decided here, once. A subclass that defines only
`matrix` and `matrix_vjp` is applied through its matrix; those of the package use kernels of their own (`_declared`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from isometry import _core, gpu
from isometry._arrays import Array, DType, common, field_of_result, finite, folded, gradient, stacked, taken, unfolded
from isometry._backend import Place, named, serve
from isometry._rules import check, check_expression, stacks
from isometry._rules.check import Shape
from isometry._rules.expression import Expression
from isometry.gpu import _calls
from isometry.operators._expressions import Expressions
from isometry.operators._random import field

if TYPE_CHECKING:
    from isometry.operators._adjoint import Adjoint
    from isometry.operators._columns import Columns

Gradients = dict[str, Any]
Room = Callable[[tuple[int, ...], DType], Any]

#: Shapes seldom change between calls.
_planned = lru_cache(256)(stacks.plan)


class Operator(Expressions):
    """A linear map on the last axis, or a stack of them.

    Attributes
    ----------
    shape
        (n_out, n_in) of each matrix.
    batch_shape
        The shape of the stack, () for one operator.
    dtype
        The NumPy dtype of the matrix.

    See Also
    --------
    Composition, Adjoint, Columns, BlockDiagonal : operators made of operators.
    :doc:`choosing` : which operator.

    Notes
    -----
    A subclass of your own calls ``super().__init__(shape=, dtype=, batch_shape=())`` and defines
    ``matrix(self, *, backend=None, check_finite=True)`` and, for gradients, ``matrix_vjp(self, ct, *, backend=None,
    check_finite=True)``. Everything else follows: it is applied through its matrix, composes, has an adjoint and works
    in `recurrence`. Conversions and members of a stack need its ``astype`` and ``__getitem__``, or are a TypeError.

    In expressions ``op(x)`` is ``op.apply(x)``, on vectors in the last axis; ``op @ x`` and ``x @ op`` are NumPy's
    matmul of ``op.matrix()`` and x; ``op1 @ op2`` is a `Composition`, ``op.H`` an `Adjoint`, ``op.T`` the same for a
    real operator; ``len(op)``, ``op[i]`` and iteration run along the batch axes of a stack; ``np.asarray(op)`` is the
    matrix. None of the products forms the matrix where the factors are cheaper.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> class Scaling(iso.Operator):
    ...     def __init__(self, factor, n):
    ...         super().__init__(shape=(n, n), dtype=np.float64)
    ...         self.factor = factor
    ...     def matrix(self, *, backend=None, check_finite=True):
    ...         return self.factor * np.eye(self.shape[0])
    >>> Scaling(2.0, 3).apply([1.0, 2.0, 3.0])
    array([2., 4., 6.])
    """

    __slots__ = ("batch_shape", "dtype", "shape")

    # The classes of `op1 @ op2` and `op.H`, which set them.
    _product: ClassVar[type[Any]]
    _transpose: ClassVar[type[Any]]

    shape: tuple[int, int]
    batch_shape: Shape
    dtype: DType

    def __init__(self, *, shape: tuple[int, int], dtype: DTypeLike, batch_shape: Shape = ()) -> None:
        self.shape, self.batch_shape = check_expression.sizes(shape, batch_shape)
        self.dtype = field(dtype)

    # -------------------------------------------------------- hooks: folded arrays (nb, ...) of one dtype

    def _check_held(self, check_finite: bool) -> None:
        """Refuse NaN in the arrays held, at the first call with `check_finite`."""

    def _members(self) -> tuple[Any, ...]:
        """The arrays held."""
        return ()

    def _act(self, x: Array, out: Array, adjoint: bool, place: Place) -> None:
        """W x, or W^H x, for rows x (nb, k, n) into out."""
        w = self._matrices(x.dtype, place)
        _core.operator_apply("dense", (w,), x, out, adjoint, False, place)

    def _pull(self, x: Array, ct: Array, x_bar: Array, adjoint: bool, place: Place) -> Gradients:
        """The gradients of the arguments; the gradient of x is written to x_bar."""
        w = self._matrices(x.dtype, place)
        w_bar = _calls.beside(w, w.shape, w.dtype)
        _core.operator_apply_vjp("dense", (w,), None, x, ct, (w_bar,), x_bar, adjoint, place)
        grads = self._pull_matrices(w, w_bar, place)
        return _calls.sent(grads) if type(x_bar) is gpu.Array else grads

    def _matrices(self, dtype: DType, place: Place) -> Array:
        """W as (nb, n_out, n_in)."""
        w = taken("matrix()", self.matrix(backend=named(place), check_finite=False))
        check.exact("matrix()", w.shape, (*self.batch_shape, *self.shape))
        return stacked(w, 2, self.batch_shape, dtype)

    def _pull_matrices(self, w: Array | None, w_bar: Array, place: Place) -> Gradients:
        """The gradients of the arguments from the gradient of W, given W."""
        del w
        w_bar = w_bar.reshape((*self.batch_shape, *self.shape))
        ct = w_bar if self.dtype.kind == "c" else w_bar.real
        return self.matrix_vjp(ct, backend=named(place), check_finite=False)

    def _local(self) -> Operator:
        """The operator on arrays of the CPU."""
        return self

    # -------------------------------------------------------- expressions that make operators

    if TYPE_CHECKING:

        def columns(self, count: int) -> Columns[Self]: ...

    @overload
    def __matmul__(self, other: Expression) -> Operator: ...  # type: ignore[overload-overlap]

    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...

    def __matmul__(self, other: Any) -> Any:
        """The product with another operator, or with columns by the rule of numpy.matmul."""
        return self._product(self, other) if isinstance(other, Expression) else self._on_columns(other, False)

    @property
    def H(self) -> Adjoint[Self]:
        """The conjugate transpose W^H, an operator itself; ``op.H.H is op``.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Dense(np.array([[1.0, 2.0j]])).H.matrix()
        array([[1.-0.j],
               [0.-2.j]])
        """
        return self._transpose(self)

    @property
    def T(self) -> Adjoint[Self]:
        """The transpose of a real operator, the same as `H`; AttributeError for a complex one."""
        if self.dtype.kind == "c":
            check_expression.no_transpose(type(self).__name__, self.dtype.name)
        return self.H

    # -------------------------------------------------------- methods

    def apply(self, x: ArrayLike, *, backend: str | None = None, check_finite: bool = True) -> Array:
        """Apply the operator to every vector of x: c = W x.

        Parameters
        ----------
        x
            Vectors in the last axis, shape (..., n_in). The leading axes broadcast against `batch_shape`.
        backend
            "cpu" or "gpu"; None: that of `use_backend`.
        check_finite
            Refuse NaN and infinity in x and in the arrays held by the operator.

        Returns
        -------
        numpy.ndarray
            Shape (..., n_out), a new array of the promoted dtype.

        Raises
        ------
        ValueError
            If the shapes do not fit, or for NaN or infinity under `check_finite`.
        TypeError
            If x has an unsupported dtype.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> swap = iso.Householder(np.array([[1.0], [-1.0]]))
        >>> swap.apply([[1.0, 2.0], [3.0, 4.0]]).round(12)
        array([[2., 1.],
               [4., 3.]])
        """
        return self._apply(x, False, backend, check_finite)

    def apply_adjoint(self, x: ArrayLike, *, backend: str | None = None, check_finite: bool = True) -> Array:
        """Apply the conjugate transpose to every vector of x: W^H x.

        Parameters, errors and cost are those of `apply`, with n_out and n_in exchanged.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Cayley.random(4, rng=0)
        >>> x = np.arange(4.0)
        >>> np.allclose(op.apply_adjoint(op.apply(x)), x)
        True
        """
        return self._apply(x, True, backend, check_finite)

    def _apply(
        self, x: ArrayLike, adjoint: bool, backend: str | None, check_finite: bool, columns: bool = False
    ) -> Array:
        """W x or W^H x; with `columns` the last but one axis of x is not a batch axis."""
        place = serve(backend)
        room: Room = np.empty
        if place == "gpu" and _calls.resident(x, *self._members()):
            x, room = _calls.single(x), gpu.Array.room
        check_finite = check.flag("check_finite", check_finite)
        if isinstance(x, Expression):
            check_expression.not_rows(type(x).__name__)
        x = taken("x", x)
        n_out, n_in = self.shape[::-1] if adjoint else self.shape
        fold = _planned(self._beside_rows() if columns else self.batch_shape, x.shape, n_in)
        self._check_held(check_finite)
        if check_finite:
            finite("x", x)
        dtype = common(self.dtype, x)
        if place == "gpu":
            _calls.fits(dtype, x=x)
        out = room((fold.nb, fold.k, n_out), dtype)
        self._act(folded(x, fold, dtype), out, adjoint, place)
        return unfolded(out, fold)

    def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Array:
        """Return the matrix W.

        Parameters
        ----------
        backend
            "cpu" or "gpu"; None: that of `use_backend`.
        check_finite
            Refuse NaN and infinity in the arrays held by the operator.

        Returns
        -------
        numpy.ndarray
            Shape (*batch_shape, n_out, n_in), a new array.

        Raises
        ------
        ValueError
            For NaN or infinity under `check_finite`.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Householder(np.array([[1.0], [-1.0]])).matrix().round(12) + 0.0
        array([[0., 1.],
               [1., 0.]])
        """
        raise NotImplementedError(f"{type(self).__name__} must define matrix()")

    def apply_vjp(
        self, x: ArrayLike, ct: ArrayLike, *, backend: str | None = None, check_finite: bool = True
    ) -> tuple[Gradients, Array]:
        """Return the gradients of `apply(x)` in the arguments of the operator and in x.

        Every gradient p_bar satisfies Re sum(conj(p_bar) dp) = Re sum(conj(ct) d apply(x)), PyTorch's convention.

        Parameters
        ----------
        x
            Vectors as given to `apply`, shape (..., n_in).
        ct
            The cotangent, of the shape of `apply(x)`.
        backend
            "cpu" or "gpu"; None: that of `use_backend`.
        check_finite
            Refuse NaN and infinity in x, in ct and in the arrays held by the operator.

        Returns
        -------
        grads : dict
            Argument name -> gradient, for every trainable array argument that was given, in its own shape and dtype.
        x_bar : numpy.ndarray
            The gradient of x, in its shape and dtype; the real part where x is real.

        Raises
        ------
        ValueError
            If the shapes do not fit, or for NaN or infinity under `check_finite`.
        TypeError
            If an array has an unsupported dtype, or ct is complex where the result is real.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> grads, x_bar = op.apply_vjp([1.0, 10.0], [1.0, 0.0])
        >>> grads["weight"], x_bar
        (array([[ 1., 10.],
               [ 0.,  0.]]), array([1., 2.]))
        """
        return self._apply_vjp("x", x, ct, False, backend, check_finite)

    def apply_adjoint_vjp(
        self, y: ArrayLike, ct: ArrayLike, *, backend: str | None = None, check_finite: bool = True
    ) -> tuple[Gradients, Array]:
        """Return the gradients of `apply_adjoint(y)` in the arguments of the operator and in y.

        Parameters
        ----------
        y
            Vectors as given to `apply_adjoint`, shape (..., n_out).
        ct
            The cotangent, of the shape of `apply_adjoint(y)`.
        backend, check_finite
            As for `apply_vjp`.

        Returns
        -------
        grads : dict
            As from `apply_vjp`.
        y_bar : numpy.ndarray
            The gradient of y, in its shape and dtype; the real part where y is real.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> op.apply_adjoint_vjp([1.0, 10.0], [1.0, 0.0])[1]
        array([1., 3.])
        """
        return self._apply_vjp("y", y, ct, True, backend, check_finite)

    def _apply_vjp(
        self, name: str, x: ArrayLike, ct: ArrayLike, adjoint: bool, backend: str | None, check_finite: bool
    ) -> tuple[Gradients, Array]:
        place = serve(backend)
        room: Room = np.empty
        if place == "gpu" and _calls.resident(x, ct, *self._members()):
            x, ct, room = _calls.single(x), _calls.single(ct), gpu.Array.room
        check_finite = check.flag("check_finite", check_finite)
        x, ct = taken(name, x), taken("ct", ct)
        n_out, n_in = self.shape[::-1] if adjoint else self.shape
        fold = _planned(self.batch_shape, x.shape, n_in, name)
        check.exact("ct", ct.shape, (*fold.full, n_out))
        dtype = common(self.dtype, x)
        field_of_result("ct", ct, dtype)
        self._check_held(check_finite)
        if check_finite:
            finite(name, x)
            finite("ct", ct)
        dtype = common(dtype, ct)
        if place == "gpu":
            _calls.fits(dtype, ct=ct, **{name: x})
        x_bar = room((fold.nb, fold.k, n_in), dtype)
        grads = self._pull(folded(x, fold, dtype), folded(ct, fold, dtype), x_bar, adjoint, place)
        return grads, gradient(unfolded(x_bar, fold), x.shape, x.dtype)

    def matrix_vjp(self, ct: ArrayLike, *, backend: str | None = None, check_finite: bool = True) -> Gradients:
        """Return the gradients of `matrix()` in the arguments of the operator.

        Parameters
        ----------
        ct
            The cotangent, shape (*batch_shape, n_out, n_in).
        backend
            "cpu" or "gpu"; None: that of `use_backend`.
        check_finite
            Refuse NaN and infinity in ct and in the arrays held by the operator.

        Returns
        -------
        dict
            Argument name -> gradient, for every trainable array argument that was given, in its own shape and dtype.

        Raises
        ------
        ValueError
            If the shape does not fit, or for NaN or infinity under `check_finite`.
        TypeError
            If ct has an unsupported dtype, or complex where the matrix is real.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Cayley(np.zeros(1)).matrix_vjp([[0.0, 1.0], [0.0, 0.0]])
        {'upper': array([-2.])}
        """
        raise NotImplementedError(f"{type(self).__name__} defines no matrix_vjp()")
