"""Operators in expressions on NumPy arrays: calls, products with arrays, conversions, SciPy's protocol."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from isometry import _determinants
from isometry._arrays import Array, taken
from isometry._backend import serve
from isometry._rules import check, check_expression
from isometry._rules.check import Shape
from isometry._rules.expression import Expression


class _of_one:
    """A method of single operators: a stack refuses it when it is read, before SciPy wraps it."""

    def __init__(self, method: Callable[[Any, ArrayLike], Array]) -> None:
        self.method = method

    def __get__(self, op: Expression | None, _cls: type) -> Callable[..., Array]:
        if op is not None and op.batch_shape:
            check_expression.a_stack(type(op).__name__, op.batch_shape)
        return self.method if op is None else MethodType(self.method, op)


class Expressions(Expression):
    """The expressions of `Operator`, each by way of its methods."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _apply(
            self, x: ArrayLike, adjoint: bool, backend: str | None, check_finite: bool, columns: bool = False
        ) -> Array: ...

        def apply(self, x: ArrayLike, *, backend: str | None = None, check_finite: bool = True) -> Array: ...

        def matrix(self, *, backend: str | None = None, check_finite: bool = True) -> Array: ...

        def _check_held(self, check_finite: bool) -> None: ...

        def _local(self) -> Expressions: ...

    def __call__(self, x: ArrayLike, *, backend: str | None = None, check_finite: bool = True) -> Array:
        """W x for every vector in the last axis of x: `apply`."""
        return self.apply(x, backend=backend, check_finite=check_finite)

    def _beside_rows(self) -> Shape:
        """The batch shape against (..., k) for k rows beside the batch."""
        return (*self.batch_shape, 1) if self.batch_shape else ()

    # -------------------------------------------------------- products

    def __rmatmul__(self, other: ArrayLike) -> Array:
        """The product of rows with W by the rule of numpy.matmul."""
        # x W = (W^H x^H)^H: rows through the adjoint, conjugated before and after where W is complex.
        x = taken("x", other)
        check_expression.columns(x.shape, self.shape[0], self.batch_shape, False)
        if self.dtype.kind != "c":
            return self._apply(x, True, None, True, x.ndim > 1)
        out = self._apply(x.conj() if x.dtype.kind == "c" else x, True, None, True, x.ndim > 1)
        return np.conjugate(out, out=out)

    def _on_columns(self, other: ArrayLike, adjoint: bool) -> Array:
        """W x or W^H x for a vector or for columns, by the rule of numpy.matmul."""
        x = taken("x", other)
        check_expression.columns(x.shape, self.shape[not adjoint], self.batch_shape, True)
        if x.ndim == 1:
            return self._apply(x, adjoint, None, True)
        rows = np.ascontiguousarray(x.swapaxes(-1, -2))  # copied once, here
        return np.ascontiguousarray(self._apply(rows, adjoint, None, True, True).swapaxes(-1, -2))

    # -------------------------------------------------------- the determinant

    def det(self, *, backend: str | None = None, check_finite: bool = True) -> Any:
        """The determinant of W, exact where the class fixes it: a sign, e^{i sum of angles}, a product of signs.

        Parameters
        ----------
        backend
            "cpu" or "gpu", where W is formed if it is needed; None: that of `use_backend`.
        check_finite
            Refuse NaN and infinity in the arrays held by the operator.

        Returns
        -------
        number or numpy.ndarray
            One of the operator's dtype for each matrix, shape batch_shape.

        Raises
        ------
        ValueError
            If W is not square, or for NaN or infinity under `check_finite`.

        Notes
        -----
        Of order n, or of the number of angles, for all but `Dense`, `BoundedSvd`, a `Cayley` of a complex triangle and
        subclasses of your own, whose matrix is eliminated in n^3 / 3 multiply-adds; `Kronecker` eliminates its factors.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> print(iso.Householder(np.array([[1.0, 0.0], [1.0, 2.0]]), sign=-1.0).det())
        -1.0
        >>> (iso.Dense(np.eye(2)) @ iso.Givens([[0.3], [0.4]], [[0, 1]], n=2)).det()
        array([1., 1.])
        """
        check_expression.square("det", type(self).__name__, self.shape)
        serve(backend)
        self._check_held(check.flag("check_finite", check_finite))
        with np.errstate(all="ignore"):  # NaN passes, and products of numbers near the ends of the range
            found = self._local()._determinant(backend)
        return np.array(np.broadcast_to(found, self.batch_shape), self.dtype)[()]

    def _determinant(self, backend: str | None) -> Any:
        """`det` of arrays of the CPU, which may have fewer batch axes."""
        w = taken("matrix()", self.matrix(backend=backend, check_finite=False))
        return _determinants.of_matrix(np, w, self._unitary(False))

    # -------------------------------------------------------- conversions

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The matrix, for `np.asarray(op)`."""
        if copy is False:
            check_expression.computed()
        w = self.matrix()
        return w if dtype is None else w.astype(dtype, copy=False)

    def astype(self, dtype: DTypeLike) -> Self:
        """Convert to another precision, or from real to complex: the same operator on converted arrays.

        Parameters
        ----------
        dtype
            float32, float64, complex64 or complex128.

        Returns
        -------
        Operator
            Of the same class and of that dtype; the operator itself where nothing changes.

        Raises
        ------
        TypeError
            If the dtype is unsupported, or real for a complex operator, or for a subclass of your own that does not
            define this method.

        Examples
        --------
        >>> import isometry as iso
        >>> iso.Cayley.random(4, rng=0).astype("float32")
        Cayley(n=4, last='signs', dtype=float32)
        """
        del dtype
        check_expression.undefined(type(self).__name__, "astype()")

    # -------------------------------------------------------- SciPy

    @_of_one
    def matvec(self, x: ArrayLike) -> Array:
        """W x for one vector; `scipy.sparse.linalg.aslinearoperator` uses this and the next three methods.

        Parameters
        ----------
        x
            Shape (n_in,) or (n_in, 1).

        Returns
        -------
        numpy.ndarray
            Shape (n_out,) or (n_out, 1).

        Raises
        ------
        TypeError
            If the operator is a stack.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]])).matvec([[1.0], [1.0]])
        array([[3.],
               [7.]])
        """
        return self._on_columns(x, False)

    @_of_one
    def rmatvec(self, x: ArrayLike) -> Array:
        """W^H x for one vector, shape (n_out,) or (n_out, 1).

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]])).rmatvec([1.0, 1.0])
        array([4., 6.])
        """
        return self._on_columns(x, True)

    @_of_one
    def matmat(self, x: ArrayLike) -> Array:
        """W X for columns, shape (n_in, k).

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]])).matmat(np.eye(2))
        array([[1., 2.],
               [3., 4.]])
        """
        return self._on_columns(x, False)

    @_of_one
    def rmatmat(self, x: ArrayLike) -> Array:
        """W^H X for columns, shape (n_out, k).

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]])).rmatmat(np.eye(2))
        array([[1., 3.],
               [2., 4.]])
        """
        return self._on_columns(x, True)
