"""The rules of operators in expressions, and their messages; written like those of `check`."""

from itertools import pairwise
from typing import NoReturn

from isometry._rules import check
from isometry._rules.check import Shape


def operator(argument: str, expected: type, value: object) -> None:
    """The argument is an operator of the calling face."""
    if not isinstance(value, expected):
        check.kind(argument, "an operator of the same face", value)


def sizes(shape: object, batch_shape: object) -> tuple[tuple[int, int], Shape]:
    """The shapes that a user's subclass gives, as tuples of Python's own integers."""
    pair = _sizes("shape", shape)
    if len(pair) != 2:
        raise ValueError(f"shape must be (n_out, n_in), not {pair}")
    return (pair[0], pair[1]), _sizes("batch_shape", batch_shape)


def batch(batch_shape: object) -> Shape:
    """The shape of a stack to be drawn."""
    return _sizes("batch_shape", batch_shape)


def random_places(name: str, places: list[str], count: int) -> NoReturn:
    """More arguments by position than a `random` has, as the sizes of a matrix or of a stack."""
    taken = " and ".join(places)
    raise TypeError(f"{name}.random takes {taken} by position, not {count} arguments; batch_shape=(...) draws a stack")


def _sizes(argument: str, value: object) -> Shape:
    if not isinstance(value, (tuple, list)):
        check.kind(argument, "a tuple of integers", value)
    return tuple(check.count(argument, size, 0) for size in value)


def not_rows(name: str) -> NoReturn:
    """An operator where vectors are expected."""
    raise TypeError(f"x must be an array of vectors, not the operator {name}; the product of two operators is A @ B")


def no_arithmetic(name: str, sign: str) -> NoReturn:
    """A sum, difference, quotient or multiple of operators."""
    raise TypeError(
        f"{check.article(name)} has products with @ but no {sign}: for arithmetic with the matrix W use op.matrix()"
    )


def columns(shape: Shape, n: int, batch: Shape, right: bool) -> None:
    """The array of a product fits by numpy.matmul's rule: n rows to the right of the operator, n columns to its
    left."""
    form = "(..., n, k)" if right else "(..., k, n)"
    if not shape or shape[-2 if right and len(shape) > 1 else -1] != n:
        side = "operator @ x" if right else "x @ operator"
        raise ValueError(f"x must have shape (n,) or {form} with n = {n} in {side}, not {shape}")
    if batch and len(shape) > 1:
        check.against("x", shape[:-2], batch, "op{} @ x" if right else "x @ op{}")


def blocks(shape: tuple[int, int], batch: Shape) -> tuple[tuple[int, int], Shape]:
    """The shapes of the block-diagonal matrix of a stack, and of the stack of such matrices."""
    if not batch or not batch[-1]:
        raise ValueError(f"operator must be a stack of batch_shape (*, h) with h >= 1, not of {batch}")
    return (batch[-1] * shape[0], batch[-1] * shape[1]), batch[:-1]


def factors(shapes: list[Shape]) -> None:
    """The matrices of a product: at least one, and each as wide as the next is high."""
    if not shapes:
        raise ValueError("operators must be at least one")
    for left, right in pairwise(shapes):
        if left[1] != right[0]:
            raise ValueError(f"operators must fit to each other: a matrix of shape {left} meets one of shape {right}")


def some_columns(value: int, n: int) -> int:
    """How many of the n columns of an operator."""
    count = check.count("count", value, 1)
    if count > n:
        raise ValueError(f"count must be at most the {n} columns of the operator, not {count}")
    return count


def no_stack(name: str) -> NoReturn:
    """A single operator where a stack is needed."""
    raise TypeError(f"a single {name}, of batch_shape (), has no length and no members")


def a_stack(name: str, batch: Shape) -> NoReturn:
    """A stack where SciPy needs a single operator."""
    raise TypeError(f"SciPy takes a single operator, not a stack of batch_shape {batch}: use a member of this {name}")


def undefined(name: str, what: str) -> NoReturn:
    """A user's subclass of `Operator` that does not define a conversion."""
    raise TypeError(f"{name} does not define {what}; a subclass of Operator gives it itself")


def square(what: str, name: str, shape: tuple[int, int]) -> None:
    """A determinant or an inverse is that of a square matrix."""
    if shape[0] != shape[1]:
        raise ValueError(f"{what} needs a square matrix: this {name} is {shape[0]} x {shape[1]}")


def no_inverse(shown: str) -> NoReturn:
    """The inverse of an operator whose adjoint may be another matrix."""
    raise ValueError(
        f"inv needs an operator that is orthogonal or unitary by its definition, and by signs of +-1, not {shown}; "
        "linalg.inv(op.matrix()) of numpy or torch inverts any matrix"
    )


def no_transpose(name: str, dtype: str) -> NoReturn:
    """The transpose of a complex operator."""
    raise AttributeError(f"{name} of {dtype} has no T: use H, the conjugate transpose")


def conversion(own: str, target: str) -> None:
    """The operator of dtype `own` converts to `target`: any precision, real to complex, but not complex to real."""
    check.floating("dtype", target)
    if check.REAL[target] == target and check.REAL[own] != own:
        raise TypeError(f"dtype must be complex for an operator of {own}, not {target}: a real part is not of its law")


def real_law(name: str, target: str) -> None:
    """An operator whose matrix is always real converts to real dtypes only."""
    if check.REAL[target] != target:
        raise TypeError(f"dtype must be real for {name}, not {target}: its matrix is always real")


def computed() -> NoReturn:
    """`np.asarray(op, copy=False)`."""
    raise ValueError("copy must not be False: the matrix of an operator is computed, never a view")


def recorded(name: str) -> NoReturn:
    """Torch face: an array of an operator whose gradients are recorded."""
    raise RuntimeError(f"{name} requires grad, which an array cannot carry: use np.asarray(op.detach())")


def elsewhere(device: str) -> NoReturn:
    """Torch face: an array of an operator on another device."""
    raise TypeError(f"the operator is on {device}, an array is in the memory of the CPU: use np.asarray(op.to('cpu'))")


# ---------------------------------------------------------------- keys


def key(part: object) -> NoReturn:
    """A key that cannot index a batch axis."""
    raise IndexError(
        "the batch axes of operators are indexed by integers, slices, ..., None, and arrays of integers or bool, "
        f"not by {type(part).__name__}"
    )


def too_many(count: int, batch: Shape) -> NoReturn:
    """More indices than batch axes."""
    raise IndexError(f"too many indices: {count} for operators of batch_shape {batch}")


def two_ellipses() -> NoReturn:
    """More than one `...`."""
    raise IndexError("an index can have only a single ellipsis ('...')")


def bounds(smallest: int, largest: int, axis: int, size: int) -> None:
    """Indices lie in -size .. size - 1, given the smallest and the largest."""
    if smallest < -size or largest >= size:
        wrong = smallest if smallest < -size else largest
        raise IndexError(f"index {wrong} is out of bounds for batch axis {axis} with size {size}")


def mask(shape: Shape, sizes: Shape) -> None:
    """A boolean array has the shape of the axes that it indexes."""
    if shape != sizes:
        raise IndexError(f"a boolean index must have the shape {sizes} of the batch axes it indexes, not {shape}")


def index_arrays(shapes: list[Shape]) -> NoReturn:
    """Index arrays that do not broadcast."""
    raise IndexError(f"index arrays must broadcast against each other, not {', '.join(map(str, shapes))}")
