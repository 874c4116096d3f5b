"""The declaration of a cell: its arrays, their shapes, its settings, and what it returns besides the states."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from isometry import _core
from isometry._rules import check, check_recurrence
from isometry._rules.check import Shape

#: The bias of the activation, the last array of every cell; its length depends on the activation.
OWN_BIAS = "activation_bias"
#: The state before marked steps, which the kernel takes behind all arrays.
START_STATE = "start_state"
#: Most steps times sequences of an x without features, which does not bound their work; the core has the same limit.
FEATURELESS = 2**24


@dataclass(frozen=True)
class Array:
    """One array argument of a cell. An array whose first axis is B may be given without that axis, for all
    sequences."""

    name: str
    axes: str  #: in the sizes T, B, d and n, numbers, or multiples such as 2n
    needed: bool = False
    note: str = ""  #: what a message adds
    shared: bool = False  #: a first axis of 1 serves all sequences too
    factors: tuple[tuple[int, str], ...] = field(init=False, repr=False)  #: (2, "n") of 2n, (3, "") of 3

    def __post_init__(self) -> None:
        found = re.findall(r"(\d*)([a-zA-Z]?)(?: |$)", self.axes)
        object.__setattr__(self, "factors", tuple((int(times or 1), size) for times, size in found if times or size))

    @property
    def rank(self) -> int:
        """The number of axes; that of the activation's bias is one."""
        return max(1, len(self.factors))

    @property
    def units(self) -> tuple[int, int]:
        """The axis of the units, counted from the last, and the numbers of each along it; an axis of 0 without one."""
        own = self.factors or ((1, "n"),)
        # not next(), whose default torch 2.8 does not trace
        at = [i for i, (_, size) in enumerate(own) if size == "n"]
        return (at[0] - len(own), own[at[0]][0]) if at else (0, 0)

    @property
    def squares(self) -> bool:
        """Whether it holds matrices that take units to units."""
        return sum(size == "n" for _, size in self.factors) == 2

    def form(self, first: int = 0) -> str:
        """The shape from that axis on, as messages show it."""
        axes = self.axes.split()[first:]
        return f"({', '.join(axes)}{',' * (len(axes) == 1)})"

    def shape(self, sizes: Mapping[str, int]) -> Shape:
        """The shape for these sizes."""
        return tuple([times * sizes[size] if size else times for times, size in self.factors])


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell of the core: its arrays in the order of the public function, the input first, and its results.

    One is equal to itself alone, so that what a call looks up by its cell takes no time.
    """

    name: str
    as_given: str  #: the arguments that the shapes of the others follow from, as a message names them
    notes: Mapping[str, str] = field(default_factory=dict)  #: what a message adds to the shape of an array
    shared: tuple[str, ...] = ()  #: arrays of which a first axis of 1 serves all sequences too
    real: bool = True  #: states are real
    own: tuple[Array, ...] = ()  #: the arrays, where the public function has others than the kernel
    #: The arrays of the initial state, side by side in the kernel's h0, in whose place they stand.
    state: tuple[str, ...] = ("h0",)
    arrays: tuple[Array, ...] = field(init=False, repr=False)
    kernel: tuple[str, ...] = field(init=False, repr=False)  #: the arrays that the kernel takes
    settings: tuple[str, ...] = field(init=False, repr=False)  #: numbers and flags
    width: int = field(init=False, repr=False)  #: numbers of a state, in n
    operator: bool = field(init=False, repr=False)  #: an operator is the whole transition, and says what n is
    matrices: str = field(init=False, repr=False)  #: an operator is one of the matrices of this array: the last
    dense: str = field(init=False, repr=False)  #: the cell that has this matrix in the array
    #: arrays whose matrices may be packed for many calls, each with the rows of its matrices in n
    packs: tuple[tuple[str, list[int]], ...] = field(init=False, repr=False)
    cpu_only: bool = field(init=False, repr=False)  #: the GPU, in a build that serves it, has no kernels for the cell
    names: tuple[str, ...] = field(init=False, repr=False)
    required: tuple[str, ...] = field(init=False, repr=False)  #: the arrays that must be given
    each: tuple[tuple[str, int], ...] = field(init=False, repr=False)  #: arrays of axes B, n, ...: how many n
    n_at: tuple[int, int] = field(init=False, repr=False)  #: the first array with an axis n, and which it is
    _known: Any = field(init=False, repr=False)  #: `sizes` of shapes that it was asked for before
    _saves: tuple[int, int] = field(init=False, repr=False)  #: arrays saved for backward, and the setting with one more
    _memory: int = field(init=False, repr=False)  #: the setting with which a matrix per sequence is returned, or -1

    def __post_init__(self) -> None:
        arguments, settings, width, saved, saves_more, memory, operator, dense, packs = _core.CELLS[self.name]
        *rows, state = arguments
        assert state[0] == START_STATE
        made = tuple([Array(n, axes, not o, self.notes.get(n, ""), n in self.shared) for n, axes, o in rows])
        parts = tuple(Array(name, "B n") for name in self.state) if len(self.state) > 1 else ()
        split = [parts if parts and a.name == "h0" else (a,) for a in made]
        arrays = self.own or tuple(a for own in split for a in own)
        axes = [a.axes.split() for a in arrays]
        each = tuple((a.name, len(own) - 1) for a, own in zip(arrays, axes, strict=True) if own[:1] == ["B"])
        at = next(i for i, own in enumerate(axes) if "n" in own)
        whole = operator == "transition"
        own = {"arrays": arrays, "kernel": tuple(a.name for a in made), "settings": settings, "width": width}
        own |= {"operator": whole, "matrices": "" if whole else operator, "dense": dense}
        own |= {"names": tuple(a.name for a in arrays), "each": each, "n_at": (at, axes[at].index("n")), "packs": packs}
        own["cpu_only"] = hasattr(_core, "gpu_cells") and (dense or self.name) not in _core.gpu_cells()
        own["required"] = tuple(a.name for a in arrays if a.needed)
        index = lambda name: settings.index(name) if name else -1
        own |= {"_saves": (saved, index(saves_more)), "_memory": index(memory)}
        for name, value in {**own, "_known": lru_cache(256)(self.sizes)}.items():
            object.__setattr__(self, name, value)

    def saved(self, *settings: Any) -> int:
        """Arrays (T, B, n) that forward saves."""
        count, more = self._saves
        return count + (more >= 0 and bool(settings[more]))

    def memory(self, *settings: Any) -> bool:
        """Whether a matrix per sequence is returned too."""
        return self._memory >= 0 and bool(settings[self._memory])

    def size(self, shapes: Sequence[Shape]) -> int:
        """n of arrays of these shapes."""
        at, axis = self.n_at
        return shapes[at][axis]

    def known(self, *kinds: Any) -> tuple[int, int, int, int | None]:
        """`sizes`, looked up, for kinds that have a hash."""
        try:
            return self._known(*kinds)
        except TypeError:  # what has no hash is no name or number, and refused below, as what was refused above
            pass
        return self.sizes(*kinds)

    def sizes(
        self,
        shapes: Sequence[Shape | None],
        transition: tuple[Shape, Shape] | None,
        complex_: bool,
        activation: str,
        slope: float,
    ) -> tuple[int, int, int, int | None]:
        """T, B, n, and the members of an ensemble, None of a single call, after a check that all arguments fit.

        `shapes` are those of the arrays, `transition` the shape and the batch shape of the operator if there is one;
        `complex_` says whether states are.
        """
        members = size = stack = None
        if transition is not None:
            shape, stack = transition
            size = check_recurrence.recurrence_transition(shape, ())
        if stack or (stack is None and len(shapes[0] or ()) == 4):
            members, shapes = self.members(shapes, stack)
        steps, batch, n = self.check(shapes, size if self.operator else None)
        check_recurrence.activation(activation, "activation")
        check_recurrence.slope(slope)
        units = shapes[-1]
        check_recurrence.activation_units(
            activation,
            n,
            None if units is None else tuple(units),
            complex_=complex_,
            argument=OWN_BIAS,
            features_of="the state" if self.real else "the transition",
        )
        return steps, batch, n, members

    def check(self, shapes: Sequence[Shape | None], n: int | None = None) -> tuple[int, int, int]:
        """(T, B, n) of arrays of these shapes, None where one is not given; n is that of the transition if there is
        one."""
        x = shapes[0]
        if x is None or len(x) != 3 or x[0] == 0 or x[1] == 0:
            raise ValueError(f"x must have shape (T, B, d) with T >= 1 and B >= 1, not {x if x is None else tuple(x)}")
        if x[2] == 0 and x[0] * x[1] > FEATURELESS:
            raise ValueError(f"x must have d >= 1 features where T B exceeds {FEATURELESS}, not shape {tuple(x)}")
        sizes = {"T": x[0], "B": x[1], "d": x[2]}
        if n is not None:
            sizes["n"] = n
        for array, shape in zip(self.arrays[1:-1], shapes[1:-1], strict=True):
            if shape is not None:
                self._fits(array, shape, sizes)
        return sizes["T"], sizes["B"], sizes["n"]

    def _fits(self, array: Array, shape: Shape, sizes: dict[str, int]) -> None:
        """Refuse a shape that does not fit; n is determined by the first array that has it."""
        name, form, shape = array.name, array.form(), tuple(shape)
        if "n" not in sizes:
            sizes["n"] = shape[self.n_at[1]] if len(shape) == len(array.factors) else 0
            if sizes["n"] == 0 or shape != array.shape(sizes):
                raise ValueError(f"{name} must have shape {form} with n >= 1, {array.note}, not {shape}")
            return
        expected = array.shape(sizes)
        # Lengths first: to compare B with n would bind a graph to batches of another size.
        if len(shape) == len(expected) and shape == expected:
            return
        if array.factors[0][1] == "B":
            one, rest = expected[1:], array.form(1)
            if shape != one and not (array.shared and shape == (1, *one)):
                raise ValueError(f"{name} must have shape {form} = {expected} or {rest} = {one}, not {shape}")
        elif array.needed:
            raise ValueError(f"{name} must have shape {form} = {expected}, as {self.as_given} have it, not {shape}")
        else:
            check.exact(name, shape, expected, form)

    def members(self, shapes: Sequence[Shape | None], stack: Shape | None) -> tuple[int | None, list[Shape | None]]:
        """The number of members of an ensemble, None for a single call, and the shapes of one member's arrays.

        `stack` is the batch shape of the operator if there is one, which then says what an ensemble is; else x does. x
        has the members as second axis, the other arrays as first where they are not for all members.
        """
        x = shapes[0]
        axes = 0 if x is None else len(x)
        if stack == () or (stack is None and axes != 4):
            return None, list(shapes)
        if stack is not None and (len(stack) != 1 or stack[0] == 0 or axes in (0, 3)):
            raise ValueError(
                f"transition must be one operator, of batch_shape (), not a stack of batch_shape {stack}; an ensemble "
                "of E recurrences takes one of batch_shape (E,) and x of shape (T, E, B, d), or (T, 1, B, d) for all "
                "members"
            )
        sizes = [
            shape[0 if at else 1]
            for at, (array, shape) in enumerate(zip(self.arrays, shapes, strict=True))
            if shape is not None and len(shape) == array.rank + 1
        ]
        members = stack[0] if stack else max(sizes)
        source = "the batch_shape of the transition" if stack else "the most members of an array"
        one: list[Shape | None] = []
        for array, shape in zip(self.arrays, shapes, strict=True):
            at, rank = (1 if array.name == "x" else 0), 0 if shape is None else len(shape)
            each = array.axes.startswith("B ")
            if shape is None or (at == 0 and (rank == array.rank or (each and rank == array.rank - 1))):
                one.append(shape)
                continue
            if rank != array.rank + 1 or shape[at] not in (1, members):
                form = f"{array.rank} axes, or E or 1 before them,"
                form = "shape (T, E, B, d), or (T, 1, B, d)" if at else form
                raise ValueError(
                    f"{array.name} must have {form} with E = {members}, {source}, not shape {tuple(shape)}"
                )
            one.append((*shape[:at], *shape[at + 1 :]))
        return members, one

    def results(self, settings: tuple[Any, ...], steps: int, batch: int, n: int) -> tuple[Shape, Shape, Shape]:
        """Shapes of the states, of the memory after them, and of what forward saves; (0,) for what a cell does not
        have."""
        states, count = (steps, batch, self.width * n), self.saved(*settings)
        return states, (batch, n, n) if self.memory(*settings) else (0,), (count, steps, batch, n) if count else (0,)
