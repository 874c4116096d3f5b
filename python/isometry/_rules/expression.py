"""Operators of both faces in expressions without arrays: stacks, truth values, representations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from isometry._objects._declaration import Declaration
from isometry._rules import check, check_expression, index
from isometry._rules.check import Shape


def _refused(sign: str) -> Callable[..., NoReturn]:
    """Arithmetic that operators do not have: its result would not satisfy the operator's definition."""

    def method(self: Expression, *_: object) -> NoReturn:
        check_expression.no_arithmetic(type(self).__name__, sign)

    return method


class Expression:
    """The part of `Operator` that both faces share.

    Examples
    --------
    >>> import numpy as np, isometry as iso
    >>> stack = iso.Dense(np.arange(12.0).reshape(3, 2, 2))
    >>> len(stack), stack[1].matrix().tolist()
    (3, [[4.0, 5.0], [6.0, 7.0]])
    >>> [op.batch_shape for op in stack[1:]], stack[..., None].batch_shape
    ([(), ()], (3, 1))
    """

    __slots__ = ()

    # NumPy leaves `array @ operator` to the operator.
    __array_ufunc__: ClassVar[None] = None

    #: The class of `op.columns(count)`, which sets it in the base class of its face.
    _part: ClassVar[type[Any]]

    __add__ = __radd__ = _refused("+")
    __sub__ = __rsub__ = __neg__ = _refused("-")
    __mul__ = __rmul__ = _refused("*")
    __truediv__ = __rtruediv__ = _refused("/")

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, int]: ...

        @property
        def batch_shape(self) -> Shape: ...

        @property
        def dtype(self) -> Any: ...

        @property
        def H(self) -> Any: ...

    @property
    def ndim(self) -> int:
        """Axes of the matrix or of the stack of matrices; SciPy's sparse arrays ask for it in ``sparse @ op``."""
        return len(self.batch_shape) + 2

    def columns(self, count: int) -> Any:
        """The first columns of W, an operator of shape (n_out, count); W with factors never forms the others.

        Parameters
        ----------
        count : int
            1 <= count <= n_in.

        Returns
        -------
        Columns

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> iso.Dense(np.array([[1.0, 2.0], [3.0, 4.0]])).columns(1).matrix()
        array([[1.],
               [3.]])
        """
        return self._part(self, count)

    def _made_of(self) -> tuple[Any, ...]:
        """Operators that make this one orthogonal or unitary if all of them are."""
        return ()

    def _unitary(self, always: bool) -> bool:
        """Whether the adjoint is the inverse, by the definition and the signs given; `always`: whatever is trained."""
        made = self._made_of()
        return bool(made) and all([op._unitary(always) for op in made])  # noqa: C419  torch.compile

    @property
    def inv(self) -> Any:
        """The inverse as an operator: ``op.H``, where W is orthogonal or unitary by its definition.

        Raises
        ------
        ValueError
            For other operators; ``linalg.inv(op.matrix())`` of NumPy or torch inverts any matrix.

        Notes
        -----
        Gradients are those of W^H. They differ from those of the inverse for a ``sign`` or ``signs`` alone, which leave
        +-1 where they are trained.

        Examples
        --------
        >>> import numpy as np, isometry as iso
        >>> op = iso.Cayley.random(3, rng=0)
        >>> np.allclose(op.inv(op([1.0, 2.0, 3.0])), [1.0, 2.0, 3.0])
        True
        """
        check_expression.square("inv", type(self).__name__, self.shape)
        if not self._unitary(False):
            check_expression.no_inverse(repr(self))
        return self.H

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        if not self.batch_shape:
            check_expression.no_stack(type(self).__name__)
        return self.batch_shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        if not self.batch_shape:
            check_expression.no_stack(type(self).__name__)
        return self._picked(index.parsed(key, self.batch_shape))

    def _picked(self, key: index.Key) -> Self:
        """The members that a key names."""
        del key
        check_expression.undefined(type(self).__name__, "__getitem__")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._parts())})"

    def _parts(self) -> list[str]:
        """What the representation shows."""
        return [f"shape={self.shape}", *self._common_parts()]

    def _common_parts(self) -> list[str]:
        """Batch shape and dtype."""
        stack = [f"batch_shape={self.batch_shape}"] if self.batch_shape else []
        return [*stack, f"dtype={self.dtype}"]


def sizes(declaration: Declaration, shapes: Sequence[Shape | None]) -> list[str]:
    """The sizes and the last factor of an object whose arguments have these shapes, None where not given.

    Examples
    --------
    >>> from isometry._objects.householder import HOUSEHOLDER
    >>> sizes(HOUSEHOLDER, [(4, 2), None, (4,)])
    ['n=4', 'm=2', "last='phases'"]
    """
    arguments = declaration.flat(len(shapes))
    given = [(argument, shape) for argument, shape in zip(arguments, shapes, strict=True) if shape is not None]
    last, lists = declaration.arguments[-1], [tuple(shape) for argument, shape in given if argument.list]
    within = last.axes.split() if lists else []
    parts = [f"{axis}={size}" for axis, size in declaration.sizes(*shapes).items() if axis not in within]
    parts += [f"{last.name}={lists}"] if lists else []
    return parts + [f"last={argument.name!r}" for argument, _ in given if argument.group == "last"]


def converted(operator: str, array: str, target: str, real: bool = False) -> str:
    """The dtype of an array when its operator is converted to `target`; `real` arguments and precisions are kept apart.

    A real operator becomes complex with its arrays; in a complex one every array keeps its field.

    Examples
    --------
    >>> converted("complex128", "float64", "complex64"), converted("float64", "float64", "complex64")
    ('float32', 'complex64')
    """
    turned = check.REAL[operator] == operator and not real
    complex_ = check.REAL[array] != array or (turned and check.REAL[target] != target)
    return target if complex_ else check.REAL[target]
