"""The declaration of an object: its arguments, as the core states them, and what follows from their shapes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isqrt
from operator import index
from typing import Any, Literal

from isometry import _core
from isometry._rules import check
from isometry._rules.check import Shape

#: The axes of a packed strict upper triangle.
TRIANGLE = "n(n-1)/2"

#: What the numbers of an argument are: of the type of the matrix; the same, and always complex; of its real type, also
#: where the matrix is complex; real angles, whose e^{i angle} make the matrix complex; a Python number, held in double
#: precision; integers; or none, where the shape says all. The last three have no gradient.
Kind = Literal["matrix", "complex", "real", "angles", "number", "integer", "shape"]


@dataclass(frozen=True)
class Argument:
    """One array argument of an object, as the Rust core states it."""

    name: str
    axes: str  #: behind the batch, in the object's sizes: "n m", "n(n-1)/2", "" for a number
    kind: Kind = "matrix"
    trained: bool = True
    group: str = ""  #: arguments of one group are not given together
    list: bool = False  #: any number of such arrays, each with sizes of its own
    own: bool = field(init=False, compare=False, repr=False)  #: its numbers are of the type of the matrix
    real: bool = field(init=False, compare=False, repr=False)  #: they are real, also where the matrix is complex
    angles: bool = field(init=False, compare=False, repr=False)
    integer: bool = field(init=False, compare=False, repr=False)
    rank: int = field(init=False, compare=False, repr=False)  #: axes behind the batch

    def __post_init__(self) -> None:
        kind = self.kind
        # Attributes: every call reads them.
        object.__setattr__(self, "own", kind in ("matrix", "complex", "shape"))
        object.__setattr__(self, "real", kind in ("real", "angles", "number"))
        for name in ("angles", "integer"):
            object.__setattr__(self, name, kind == name)
        object.__setattr__(self, "rank", len(self.axes.split()))
        object.__setattr__(self, "trained", self.trained and kind not in ("number", "integer", "shape"))

    def shape(self, sizes: Mapping[str, int]) -> Shape:
        """The shape without a batch, for these sizes."""
        n = sizes["n"]
        known = {TRIANGLE: n * (n - 1) // 2, **sizes}
        return tuple(int(axis) if axis.isdecimal() else known[axis] for axis in self.axes.split())

    def given(self, value: Any, array: Any) -> Shape | None:
        """The shape of an argument given as `value` and converted to `array`; kind "shape" is given as a shape or an
        array."""
        if self.kind == "shape":
            return tuple(getattr(value, "shape", value))
        return None if array is None else array.shape  # type: ignore[no-any-return]

    def form(self) -> str:
        """The shape as messages show it."""
        return f"({', '.join(['*', *self.axes.split()])})"


@dataclass(frozen=True)
class Determinant:
    """det W as a factor of the sizes, times entries of arguments, e^{i sum of angles} and signs of permutations; or
    that of a Kronecker product."""

    of_sizes: Callable[[dict[str, int]], int | None] = lambda _: 1  #: None where there is no formula
    products: tuple[str, ...] = ()
    turns: Mapping[str, int] = field(default_factory=dict)  #: angles -> the sign with which they count
    permutations: tuple[str, ...] = ()
    factors: bool = False  #: W is the Kronecker product of the arguments
    real: bool = False  #: it holds where the first argument is real


@dataclass(frozen=True, eq=False)
class Declaration:
    """An object's name, arguments, and sizes.

    A size is bound by the first argument that has it; later ones must agree. Sizes are at least 1, except those in
    `empty`. Where sizes follow from others, `bind` makes them from those of the first argument, in which the sizes of a
    list are lists.
    """

    name: str
    stem: str
    arguments: tuple[Argument, ...] = ()  #: by default those that the core states
    matrix: tuple[str, str] = ("n", "n")  #: the sizes that the matrix has
    empty: tuple[str, ...] = ()
    bind: Callable[[dict[str, Any]], dict[str, int]] | None = None
    checked: tuple[str, ...] = ()  #: arguments whose values are restricted
    loose: tuple[str, ...] = ()  #: arguments with which the matrix need not be unitary
    exists: Mapping[str, Callable[[int], bool]] = field(
        default_factory=dict
    )  #: option -> for which n it exists; "": the object
    determinant: Determinant | None = None  #: None: that of the matrix, by elimination
    saves_matrix: bool = False  #: the gradient of the matrix starts from the matrix
    required: int = 1  #: how many arguments, from the first on, must be given
    lead: int = field(init=False, repr=False)  #: the first argument that has the dtype of the matrix, else the first
    turns: tuple[int, ...] = field(init=False, repr=False)  #: the angles, where no argument has the dtype of the matrix
    by_name: Mapping[str, Argument] = field(init=False, repr=False)  #: the arguments
    known: object = field(init=False, repr=False)
    alone: bool = field(init=False, repr=False)
    first_checked: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.arguments:
            rows = _core.OBJECTS[self.stem]
            object.__setattr__(self, "arguments", tuple(Argument(*row) for row in rows))
        object.__setattr__(self, "by_name", {argument.name: argument for argument in self.arguments})
        # Shapes seldom change between calls: their results are cached.
        object.__setattr__(self, "known", lru_cache(256)(self.check))
        own = [i for i, a in enumerate(self.arguments) if a.own]
        object.__setattr__(self, "lead", own[0] if own else 0)
        object.__setattr__(self, "turns", () if own else tuple(i for i, a in enumerate(self.arguments) if a.angles))
        # The common case, the first argument alone, is taken as it is.
        object.__setattr__(self, "alone", self.required == 1 and self.arguments[0].kind == "matrix")
        object.__setattr__(self, "first_checked", self.arguments[0].name in self.checked)

    @property
    def real(self) -> bool:
        """Whether the matrix is real whatever its arguments; integers and shapes have no field."""
        return all((a.real and not a.angles) or a.kind in ("integer", "shape") for a in self.arguments)

    @property
    def unitary(self) -> bool:
        """Whether the matrix of the required arguments is orthogonal or unitary, so that its adjoint inverts it."""
        return not any(a.name in self.loose for a in self.arguments[: self.required])

    @property
    def signed(self) -> bool:
        """Whether its adjoint inverts it wherever the loose arguments that are given are signs +-1."""
        return not any(a.name in self.loose and a.own for a in self.arguments)

    def flat(self, count: int) -> tuple[Argument, ...]:
        """The arguments that `count` arrays belong to: the last one repeatedly if it is a list."""
        last = self.arguments[-1]
        return self.arguments if not last.list else (*self.arguments[:-1], *(last,) * (count - len(self.arguments) + 1))

    def check(self, *shapes: Shape | None) -> tuple[Shape, Shape]:
        """(matrix shape, batch shape) of arguments of these shapes, None where one is not given."""
        sizes, batches = self._bound(shapes)
        rows, columns = self.matrix
        return (sizes[rows], sizes[columns]), check.broadcast(**batches)

    def sizes(self, *shapes: Shape | None) -> dict[str, Any]:
        """The sizes of arguments of these shapes."""
        return self._bound(shapes)[0]

    def _bound(self, shapes: tuple[Shape | None, ...]) -> tuple[dict[str, Any], dict[str, Shape]]:
        """The sizes that the arguments have, and the batch of each."""
        sizes: dict[str, Any] = {}
        batches: dict[str, Shape] = {}
        groups: dict[str, str] = {}
        for i, argument in enumerate(self.arguments):
            name, group = argument.name, argument.group
            if argument.list:
                each: list[dict[str, int]] = [{} for _ in shapes[i:]]
                if not each:
                    raise ValueError(f"{name} must have at least one entry")
                for k, own in enumerate(each):
                    batches[f"{name}[{k}]"] = self._bind(argument, shapes[i + k] or (), own, f" at index {k}")
                # Lists: torch.compile does not trace a generator here.
                sizes |= {axis: [own[axis] for own in each] for axis in argument.axes.split()}
            elif (shape := shapes[i]) is not None:
                if group and group in groups:
                    text = f"{groups[group]} and {name} must not be given together: either makes the {group} factor"
                    raise ValueError(text)
                groups[group] = name
                batches[name] = self._bind(argument, shape, sizes)
            if i == 0 and self.bind is not None:
                sizes |= self.bind(sizes)
        return sizes, batches

    def _bind(self, argument: Argument, shape: Shape, sizes: dict[str, int], at: str = "") -> Shape:
        """Bind or check the sizes of one array, at index `at` of a list, and return its batch shape."""
        axes = argument.axes.split()
        own = shape[len(shape) - len(axes) :]
        if len(shape) < len(axes):
            self._refuse(argument, shape, sizes, at)
        for axis, size in zip(axes, own, strict=True):
            if axis == TRIANGLE:
                size, axis = packed_size(argument.name, size, beside=shape[-2:-1]), "n"
            if axis.isdecimal():
                if size != int(axis):
                    self._refuse(argument, shape, sizes, at)
            elif sizes.setdefault(axis, size) != size or (size == 0 and axis not in self.empty):
                self._refuse(argument, shape, sizes, at)
        return shape[: len(shape) - len(axes)]

    def _refuse(self, argument: Argument, shape: Shape, sizes: dict[str, int], at: str) -> None:
        axes = argument.axes.split()
        known = [f"{axis} = {sizes[axis]}" for axis in dict.fromkeys(axes) if sizes.get(axis) is not None]
        least = [axis for axis in dict.fromkeys(axes) if axis.isalpha() and axis not in self.empty]
        first = argument is self.arguments[0]
        rule = f" with {', '.join(least)} >= 1" if first and least else f" with {', '.join(known)}" if known else ""
        raise ValueError(f"{argument.name} must have shape {argument.form()}{rule}, not {tuple(shape)}{at}")


def packed_size(argument: str, length: int, *, beside: Shape = ()) -> int:
    """The size n of a skew matrix from the length n(n-1)/2 of its packed strict upper triangle; `beside` is the axis
    before it, which only the message needs.
    """
    # A symbolic size of torch.compile becomes a number first: it has no square root.
    length = index(length)
    n = (1 + isqrt(1 + 8 * length)) // 2
    if n * (n - 1) // 2 != length:
        hint = "; from_skew takes whole skew matrices" if beside == (length,) else ""
        raise ValueError(
            f"{argument} must have n(n-1)/2 entries in its last axis (0, 1, 3, 6, 10, ...), not {length}{hint}"
        )
    return n
