"""`Array`: numbers in the memory of the GPU."""

from math import prod
from numbers import Complex
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isometry import _core
from isometry._rules import check, check_gpu
from isometry._rules.masks import unmasked
from isometry.gpu.adapters import built

#: The types of arrays on the GPU.
SINGLE = np.dtype(np.float32), np.dtype(np.complex64)

if TYPE_CHECKING:
    from isometry._core import GpuArray as _Memory
else:
    _Memory = getattr(_core, "GpuArray", object)


class Array(_Memory):
    """An array in the memory of the GPU, of float32 or complex64.

    It cannot be changed. Operators, recurrences and the delta rule with ``backend="gpu"`` take it in place of any
    array, and then return arrays of this class; only `download` waits for the GPU. Sums, differences, and multiples by
    numbers are computed there, too.

    Parameters
    ----------
    array
        What to copy: anything that NumPy takes for an array. float64 becomes float32, complex128 complex64.

    Raises
    ------
    TypeError
        If it is not an array of numbers.
    NotImplementedError
        If there is no adapter, or if this build has no GPU support.
    RuntimeError
        If the array is too large, there is not enough memory, or the device was lost.

    See Also
    --------
    Adapter : the GPU that holds it.
    :doc:`gpu` : what runs there.

    Examples
    --------
    >>> import numpy as np
    >>> import isometry as iso
    >>> held = iso.gpu.Array(np.ones((2, 3)))
    >>> held.shape, held.dtype
    ((2, 3), dtype('float32'))
    >>> (2 * held + held).download().sum()
    np.float32(18.0)
    """

    __slots__ = ()

    #: As of a NumPy array that no call has to copy.
    flags = SimpleNamespace(c_contiguous=True, aligned=True)

    def __new__(cls, array: ArrayLike) -> Self:
        unmasked("array", array)
        a = np.asarray(array)
        if a.dtype.kind not in "biufc":
            check.floating("array", a.dtype.name)
        single = a.astype(np.complex64 if a.dtype.kind == "c" else np.float32, copy=False)
        built()
        made = cls.room(single.shape, single.dtype)
        _core.gpu_upload(np.ascontiguousarray(single).reshape(single.shape), made)
        return made

    @classmethod
    def room(cls, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Self:
        """Room for an array that one call computes, as `numpy.empty`."""
        if dtype not in SINGLE:
            check_gpu.single("the result", dtype.name)
        return _Memory.__new__(cls, shape, dtype.kind == "c")

    @classmethod
    def like(cls, a: Any) -> Self:
        """Room for an array of that shape and dtype, as `numpy.empty_like`."""
        return cls.room(a.shape, a.dtype)

    @classmethod
    def upload(cls, array: ArrayLike) -> Self:
        """Copy an array to the GPU: the same as the constructor."""
        return cls(array)

    def download(self) -> NDArray[Any]:
        """Wait for the GPU, and copy to a NumPy array.

        Returns
        -------
        numpy.ndarray
            A new array of the same shape and dtype.
        """
        return _core.gpu_download(self)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def reshape(self, *shape: Any) -> "Array":
        """The same numbers in another shape, without a copy.

        Parameters
        ----------
        *shape
            Sizes of the axes, or one tuple of them.

        Raises
        ------
        ValueError
            If the number of elements differs.
        """
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return _Memory.__new__(type(self), sizes, of=self)

    # -------------------------------------------------------- sums and multiples

    #: NumPy leaves `array + self` and `number * self` to this class.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> "Array":
        return self._combined(1.0, other, 1.0)

    def __radd__(self, other: Any) -> "Array":
        return self._combined(1.0, other, 1.0)

    def __sub__(self, other: Any) -> "Array":
        return self._combined(1.0, other, -1.0)

    def __rsub__(self, other: Any) -> "Array":
        return self._combined(-1.0, other, 1.0)

    def __neg__(self) -> "Array":
        return self._scaled(-1.0)

    def __mul__(self, factor: Any) -> "Array":
        return self._scaled(factor)

    def __rmul__(self, factor: Any) -> "Array":
        return self._scaled(factor)

    def __truediv__(self, divisor: Any) -> "Array":
        return self._scaled(1 / complex(divisor)) if isinstance(divisor, Complex) else NotImplemented

    def _combined(self, alpha: float, other: Any, beta: float) -> "Array":
        """alpha self + beta other, of one shape and dtype."""
        if not isinstance(other, (Array, np.ndarray)):
            return NotImplemented
        if other.dtype != self.dtype:
            raise TypeError(f"{self.dtype.name} and {other.dtype.name}: on the GPU nothing is converted")
        check.exact("the other array", other.shape, self.shape)
        if isinstance(other, np.ndarray):
            other = Array(other)
        return self._made((alpha, 0.0), other, (beta, 0.0))

    def _scaled(self, factor: Any) -> "Array":
        if not isinstance(factor, Complex):
            return NotImplemented
        value = complex(factor)
        if value.imag and self.dtype.kind != "c":
            raise TypeError(
                f"a multiple of {self.dtype.name} must be real, not {factor}: on the GPU nothing is converted"
            )
        return self._made((value.real, value.imag), None, (0.0, 0.0))

    def _made(self, alpha: tuple[float, float], other: "Array | None", beta: tuple[float, float]) -> "Array":
        out = Array.room(self.shape, self.dtype)
        _core.gpu_combine(self, alpha, other, beta, out)
        return out

    def __repr__(self) -> str:
        return f"Array(shape={self.shape}, dtype={self.dtype.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.download(),)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("it is in the memory of the GPU: call with backend='gpu', or download() it")

    def __getitem__(self, _: Any) -> NoReturn:
        self.__array__()

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse the other attributes of NumPy arrays, which would compute on the CPU."""
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            self.__array__()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
