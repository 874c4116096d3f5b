"""What an object is, said once: its arguments, their shapes, and what follows from them for every face and layer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isqrt
from operator import index

from isometry._rules import check
from isometry._rules.check import Shape

#: The axes of a packed strict upper triangle.
TRIANGLE = "n(n-1)/2"


@dataclass(frozen=True)
class Argument:
    """One array argument of an object; the Rust core has the same list, and a test holds both equal."""

    name: str
    axes: str  #: behind the batch, in the object's sizes: "n m", "n(n-1)/2", "" for a number
    real: bool = False  #: of the real type also where the matrix is complex
    trained: bool = True
    group: str = ""  #: arguments of one group are not given together
    angles: bool = False  #: e^{i argument} makes the matrix complex
    number: bool = False  #: a Python number, held in double precision
    list: bool = False  #: any number of such arrays, each with sizes of its own
    integer: bool = False  #: integers, without a gradient

    @property
    def own(self) -> bool:
        """Whether its numbers are of the type of the matrix."""
        return not (self.real or self.integer)

    @property
    def rank(self) -> int:
        """Axes behind the batch."""
        return len(self.axes.split())

    def shape(self, sizes: Mapping[str, int]) -> Shape:
        """The shape without a batch, for these sizes."""
        n = sizes["n"]
        known = {TRIANGLE: n * (n - 1) // 2, **sizes}
        return tuple(int(axis) if axis.isdecimal() else known[axis] for axis in self.axes.split())

    def form(self, batch: bool = True) -> str:
        """The shape as a message shows it."""
        axes = ["*"] * batch + self.axes.split()
        return f"({', '.join(axes)})"


@dataclass(frozen=True)
class Declaration:
    """An object's name, arguments, and sizes.

    A size is bound by the first argument that has it; later ones must agree. Sizes are at least 1, but for those in
    `empty`.
    """

    name: str
    stem: str
    arguments: tuple[Argument, ...]
    matrix: tuple[str, str] = ("n", "n")  #: the sizes that the matrix has
    empty: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()  #: arguments whose values the law restricts
    saves_matrix: bool = False  #: the gradient of the matrix starts from the matrix
    required: int = 1  #: so many arguments, the first ones, must be given
    batched: bool = True  #: arguments may have leading axes, of a stack
    known: object = field(init=False, repr=False, compare=False)
    first_checked: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Shapes seldom change between calls: what they imply is looked up.
        object.__setattr__(self, "known", lru_cache(256)(self.check))
        object.__setattr__(self, "first_checked", self.arguments[0].name in self.checked)

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments' names."""
        return tuple(a.name for a in self.arguments)

    @property
    def lead(self) -> int:
        """The argument whose dtype is the matrix's: the first that is of its type."""
        return next((i for i, a in enumerate(self.arguments) if a.own), 0)

    @property
    def real(self) -> bool:
        """Whether the matrix is real whatever its arguments."""
        return all(a.real and not a.angles for a in self.arguments)

    def flat(self, count: int) -> tuple[Argument, ...]:
        """The arguments of `count` arrays: the last one again and again if it is a list."""
        last = self.arguments[-1]
        return self.arguments if not last.list else (*self.arguments[:-1], *(last,) * (count - len(self.arguments) + 1))

    def check(self, *shapes: Shape | None) -> tuple[Shape, Shape]:
        """(matrix shape, batch shape) of arguments of these shapes, None where one is not given."""
        sizes: dict[str, int] = {}
        batches: dict[str, Shape] = {}
        groups: dict[str, str] = {}
        for argument, shape in zip(self.arguments, shapes, strict=True):
            if shape is None:
                continue
            name, group = argument.name, argument.group
            if group and group in groups:
                raise ValueError(
                    f"{groups[group]} and {name} must not be given together: either makes the {group} factor"
                )
            groups[group] = name
            batches[name] = self._bind(argument, shape, sizes)
        rows, columns = self.matrix
        return (sizes[rows], sizes[columns]), check.broadcast(**batches)

    def sizes(self, given: Iterable[tuple[Argument, Shape]]) -> dict[str, int]:
        """The sizes that arguments of these shapes bind; those of a list are its own."""
        sizes: dict[str, int] = {}
        for argument, shape in given:
            if not argument.list:
                self._bind(argument, shape, sizes)
        return sizes

    def _bind(self, argument: Argument, shape: Shape, sizes: dict[str, int]) -> Shape:
        """Bind or check the sizes of one argument, and return its batch shape."""
        name, axes = argument.name, argument.axes.split()
        own = shape[len(shape) - len(axes) :]
        if len(shape) < len(axes) or (len(shape) > len(axes) and not self.batched):
            self._refuse(argument, shape, sizes)
        for axis, size in zip(axes, own, strict=True):
            if axis == TRIANGLE:
                size, axis = packed_size(name, size), "n"
            if axis.isdecimal():
                if size != int(axis):
                    self._refuse(argument, shape, sizes)
            elif sizes.setdefault(axis, size) != size or (size == 0 and axis not in self.empty):
                self._refuse(argument, shape, sizes)
        return shape[: len(shape) - len(axes)]

    def _refuse(self, argument: Argument, shape: Shape, sizes: dict[str, int]) -> None:
        axes = argument.axes.split()
        known = [f"{axis} = {sizes[axis]}" for axis in dict.fromkeys(axes) if sizes.get(axis)]
        least = [axis for axis in dict.fromkeys(axes) if axis.isalpha() and axis not in self.empty]
        first = argument is self.arguments[0]
        rule = f" with {', '.join(least)} >= 1" if first and least else f" with {', '.join(known)}" if known else ""
        raise ValueError(f"{argument.name} must have shape {argument.form(self.batched)}{rule}, not {tuple(shape)}")


def packed_size(argument: str, length: int) -> int:
    """The size n of a skew matrix from the length n(n-1)/2 of its packed strict upper triangle."""
    # A symbolic size of torch.compile becomes a number: no root is taken of it.
    length = index(length)
    n = (1 + isqrt(1 + 8 * length)) // 2
    if n * (n - 1) // 2 != length:
        raise ValueError(f"{argument} must have n(n-1)/2 entries in its last axis (0, 1, 3, 6, 10, ...), not {length}")
    return n
