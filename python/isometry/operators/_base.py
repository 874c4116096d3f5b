"""Shared by all operators: c = W x on rows, the adjoint W^H, and their vector-Jacobian products.

A subclass defines its data and its matrix. It lists its arguments (`_arguments`), checks them when built, and maps
folded arrays (nb, ...) of one dtype to the stateless functions of the extension in the four hooks `_form`,
`_form_vjp`, `_act`, `_act_vjp`. Broadcasting, promotion, finiteness, threads and the shapes of gradients are handled
here.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from isometry import _batch, _check, _core, _threads
from isometry._arrays import Array, DType, common, finite, folded, gradient, real_type, stacked, taken, unfolded
from isometry._check import Shape

#: Arrays of shape (nb, ...), one per argument in the order of `_arguments`; None where not given or not requested.
Folded = tuple[Any, ...]


class Argument(NamedTuple):
    """One array argument of an operator."""

    name: str
    rank: int  # trailing axes, after the batch axes
    real: bool = False  # of the real type even if W is complex
    trainable: bool = True


class Operator:
    """A linear map on the last axis, or a stack of them.

    Operators are immutable and hold references to the arrays they were built from. Users do not instantiate this
    class; see `Householder`, `Cayley`, `Dense`.

    Attributes
    ----------
    shape
        (n_out, n_in) of each matrix.
    batch_shape
        The shape of the stack, () for one operator.
    dtype
        The NumPy dtype of the matrix.
    """

    __slots__ = ("_finite", "batch_shape", "dtype", "shape")

    _arguments: ClassVar[tuple[Argument, ...]] = ()

    shape: tuple[int, int]
    batch_shape: Shape
    dtype: DType
    _finite: bool

    # -------------------------------------------------------- data

    def _hold(self, shape: tuple[int, int], batch_shape: Shape, dtype: DType, *arrays: Array | None) -> None:
        """Set all attributes, once."""
        put = object.__setattr__
        put(self, "shape", shape)
        put(self, "batch_shape", batch_shape)
        put(self, "dtype", dtype)
        put(self, "_finite", False)
        for argument, array in zip(self._arguments, arrays, strict=True):
            put(self, argument.name, array)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} cannot be set: a {type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} cannot be deleted: a {type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {a.name: getattr(self, a.name) for a in self._arguments})

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, batch_shape={self.batch_shape}, dtype={self.dtype})"

    # -------------------------------------------------------- hooks

    def _form(self, p: Folded, out: Array, threads: int) -> None:
        """W into out (nb, n_out, n_in)."""
        raise NotImplementedError

    def _form_vjp(self, p: Folded, w: Array | None, ct: Array, bars: Folded, threads: int) -> None:
        """The gradients of the arguments from ct (nb, n_out, n_in) into bars; w is the matrix if it is available."""
        raise NotImplementedError

    def _act(self, p: Folded, x: Array, out: Array, adjoint: bool, threads: int) -> None:
        """W x, or W^H x, for rows x (nb, k, n) into out."""
        w = self._matrices(p, x.dtype, threads)
        _core.dense_apply(w, x, out, adjoint, threads)

    def _act_vjp(self, p: Folded, x: Array, ct: Array, bars: Folded, x_bar: Array, threads: int) -> None:
        """The gradients of the arguments and of x into bars and x_bar."""
        w = self._matrices(p, x.dtype, threads)
        w_bar = np.empty_like(w)
        _core.dense_apply_vjp(w, x, ct, w_bar, x_bar, False, threads)
        self._form_vjp(p, w, w_bar, bars, threads)

    def _step_kernels(self, steps: int, batch: int) -> tuple[Callable[..., None], Callable[..., None]] | None:
        """The recurrence and its VJP that apply the factors at each step, if that is cheaper than forming W once."""
        del steps, batch
        return None

    # -------------------------------------------------------- folded arrays

    def _check_held(self, check_finite: bool) -> None:
        """Reject NaN and infinity in the arrays held, at the first call that requests it."""
        if check_finite and not self._finite:
            for argument in self._arguments:
                finite(argument.name, getattr(self, argument.name))
            object.__setattr__(self, "_finite", True)

    def _parameters(self, dtype: DType) -> Folded:
        """The arguments broadcast to the batch and folded to (nb, ...), for arithmetic in dtype."""
        held = []
        for name, rank, real, _ in self._arguments:
            a = getattr(self, name)
            held.append(None if a is None else stacked(a, rank, self.batch_shape, real_type(dtype) if real else dtype))
        return tuple(held)

    def _bars(self, p: Folded) -> Folded:
        """Room for the gradients of the given trainable arguments."""
        return tuple(
            np.empty_like(a) if t.trainable and a is not None else None for t, a in zip(self._arguments, p, strict=True)
        )

    def _gradients(self, bars: Folded) -> dict[str, Array]:
        """The gradients under the arguments' names, in their own shapes and dtypes."""
        result = {}
        for (name, rank, _, _), bar in zip(self._arguments, bars, strict=True):
            if bar is not None:
                own = getattr(self, name)
                core = bar.shape[bar.ndim - rank :]
                result[name] = gradient(bar.reshape((*self.batch_shape, *core)), own.shape, own.dtype)
        return result

    def _matrices(self, p: Folded, dtype: DType, threads: int) -> Array:
        """W as (nb, n_out, n_in)."""
        nb = next(a.shape[0] for a in p if a is not None)
        out = np.empty((nb, *self.shape), dtype)
        self._form(p, out, threads)
        return out

    # -------------------------------------------------------- methods

    def apply(self, x: Any, *, check_finite: bool = True, backend: str = "cpu") -> Array:
        """Apply the operator to every vector of x: c = W x.

        Parameters
        ----------
        x
            Vectors in the last axis, shape (..., n_in). The leading axes broadcast against `batch_shape`.
        check_finite
            Reject NaN and infinity in x and in the arrays held by the operator.
        backend
            "cpu".

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
        return self._rows(x, False, check_finite, backend)

    def apply_adjoint(self, x: Any, *, check_finite: bool = True, backend: str = "cpu") -> Array:
        """Apply the conjugate transpose to every vector of x: W^H x.

        Parameters
        ----------
        x
            Vectors in the last axis, shape (..., n_out). The leading axes broadcast against `batch_shape`.
        check_finite
            Reject NaN and infinity in x and in the arrays held by the operator.
        backend
            "cpu".

        Returns
        -------
        numpy.ndarray
            Shape (..., n_in), a new array of the promoted dtype.

        Raises
        ------
        ValueError
            If the shapes do not fit, or for NaN or infinity under `check_finite`.
        TypeError
            If x has an unsupported dtype.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Cayley.random(4, rng=0)
        >>> x = np.arange(4.0)
        >>> np.allclose(op.apply_adjoint(op.apply(x)), x)
        True
        """
        return self._rows(x, True, check_finite, backend)

    def _rows(self, x: Any, adjoint: bool, check_finite: bool, backend: str) -> Array:
        _check.backend(backend)
        check_finite = _check.flag("check_finite", check_finite)
        x = taken("x", x)
        n_out, n_in = self.shape[::-1] if adjoint else self.shape
        fold = _batch.plan(self.batch_shape, x.shape, n_in)
        self._check_held(check_finite)
        if check_finite:
            finite("x", x)
        dtype = common(self.dtype, x)
        out = np.empty((fold.nb, fold.k, n_out), dtype)
        self._act(self._parameters(dtype), folded(x, fold, dtype), out, adjoint, _threads.get_num_threads())
        return unfolded(out, fold)

    def matrix(self, *, check_finite: bool = True, backend: str = "cpu") -> Array:
        """Return the matrix W.

        Parameters
        ----------
        check_finite
            Reject NaN and infinity in the arrays held by the operator.
        backend
            "cpu".

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
        _check.backend(backend)
        check_finite = _check.flag("check_finite", check_finite)
        self._check_held(check_finite)
        w = self._matrices(self._parameters(self.dtype), self.dtype, _threads.get_num_threads())
        return w.reshape((*self.batch_shape, *self.shape))

    def apply_vjp(
        self, x: Any, ct: Any, *, check_finite: bool = True, backend: str = "cpu"
    ) -> tuple[dict[str, Array], Array]:
        """Pull a cotangent of `apply(x)` back to the arguments of the operator and to x.

        Every gradient p_bar satisfies Re sum(conj(p_bar) dp) = Re sum(conj(ct) d apply(x)), PyTorch's convention.

        Parameters
        ----------
        x
            Vectors as given to `apply`, shape (..., n_in).
        ct
            The cotangent, of the shape of `apply(x)`.
        check_finite
            Reject NaN and infinity in x, in ct and in the arrays held by the operator.
        backend
            "cpu".

        Returns
        -------
        grads : dict
            Argument name -> gradient, for every given trainable array argument, in its own shape and dtype.
        x_bar : numpy.ndarray
            The gradient of x, in its shape and dtype; the real part if x is real.

        Raises
        ------
        ValueError
            If the shapes do not fit, or for NaN or infinity under `check_finite`.
        TypeError
            If an array has an unsupported dtype, or ct is complex but the result real.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> grads, x_bar = op.apply_vjp([1.0, 10.0], [1.0, 0.0])
        >>> grads["weight"], x_bar
        (array([[ 1., 10.],
               [ 0.,  0.]]), array([1., 2.]))
        """
        _check.backend(backend)
        check_finite = _check.flag("check_finite", check_finite)
        x, ct = taken("x", x), taken("ct", ct)
        fold = _batch.plan(self.batch_shape, x.shape, self.shape[1])
        _check.exact("ct", ct.shape, (*fold.full, self.shape[0]))
        dtype = common(self.dtype, x)
        _check.field_of_result("ct", ct.dtype.name, dtype.name)
        self._check_held(check_finite)
        if check_finite:
            finite("x", x)
            finite("ct", ct)
        dtype = common(dtype, ct)
        p = self._parameters(dtype)
        bars, x_bar = self._bars(p), np.empty((fold.nb, fold.k, self.shape[1]), dtype)
        self._act_vjp(p, folded(x, fold, dtype), folded(ct, fold, dtype), bars, x_bar, _threads.get_num_threads())
        return self._gradients(bars), gradient(unfolded(x_bar, fold), x.shape, x.dtype)

    def matrix_vjp(self, ct: Any, *, check_finite: bool = True, backend: str = "cpu") -> dict[str, Array]:
        """Pull a cotangent of `matrix()` back to the arguments of the operator.

        Parameters
        ----------
        ct
            The cotangent, shape (*batch_shape, n_out, n_in).
        check_finite
            Reject NaN and infinity in ct and in the arrays held by the operator.
        backend
            "cpu".

        Returns
        -------
        dict
            Argument name -> gradient, for every given trainable array argument, in its own shape and dtype.

        Raises
        ------
        ValueError
            If the shape does not fit, or for NaN or infinity under `check_finite`.
        TypeError
            If ct has an unsupported dtype, or is complex but the matrix real.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Cayley(np.zeros(1)).matrix_vjp([[0.0, 1.0], [0.0, 0.0]])
        {'upper': array([-2.])}
        """
        _check.backend(backend)
        check_finite = _check.flag("check_finite", check_finite)
        ct = taken("ct", ct)
        _check.exact("ct", ct.shape, (*self.batch_shape, *self.shape))
        _check.field_of_result("ct", ct.dtype.name, self.dtype.name)
        self._check_held(check_finite)
        if check_finite:
            finite("ct", ct)
        return self._matrix_vjp(ct, common(self.dtype, ct))

    def _matrix_vjp(self, ct: Array, dtype: DType) -> dict[str, Array]:
        p = self._parameters(dtype)
        bars = self._bars(p)
        self._form_vjp(p, None, stacked(ct, 2, self.batch_shape, dtype), bars, _threads.get_num_threads())
        return self._gradients(bars)


def _rebuild(cls: type[Operator], arguments: dict[str, Array | None]) -> Operator:
    first, *rest = arguments.items()
    return cls(first[1], **dict(rest))  # type: ignore[call-arg]


def last_factor(others: Sequence[Array | None], phases: Array | None) -> DType:
    """The dtype of W: that of its arrays, complex if phases are given."""
    result = common(*others, phases)
    return result if phases is None else np.result_type(result, np.complex64)
