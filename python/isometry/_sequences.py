"""Shared by all functions over a sequence: check the arguments, bring them to one dtype and the order of the kernels,
make one call.

In an ensemble the kernels take every array with the members as first axis, of size 1 where one serves all of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isometry import _core, _marks, gpu
from isometry._arrays import (
    Array,
    DType,
    broadcast,
    common,
    field_of_result,
    finite,
    ready,
    real_type,
    taken,
    taken_integers,
    taken_real,
)
from isometry._backend import Place, only_cpu, serve
from isometry._cells._declaration import OWN_BIAS, START_STATE, Cell
from isometry._routes import Route, by_length, route_of
from isometry._rules import check, check_recurrence
from isometry.gpu import _calls
from isometry.operators._operator import Operator

Given = dict[str, Any]  # arrays, None for one that is not given
#: From the arrays of a public function to those of the kernel, or from gradients of these to those of the former.
Form = Callable[[Given], Given]


#: Of the kernel's arrays: the axis of the sequences.
_SEQUENCES = {"x": -2, "h0": -2, "r0": -3, START_STATE: -2}


class Options(NamedTuple):
    """The arguments that are no arrays of a cell."""

    activation: str
    slope: float
    settings: tuple[float | bool | None, ...]
    lengths: ArrayLike | None
    reverse: bool
    starts: ArrayLike | None
    start_state: Any  # of a cell whose state has two parts, a pair
    backend: str | None
    check_finite: bool


class Checked(NamedTuple):
    """What a check of the arguments finds."""

    members: int | None  # of an ensemble
    shape: tuple[int, int, int]  # T, B, n
    dtype: DType  # of the states
    start_state: tuple[Array, ...] | None  # its parts
    lengths: Array | None
    check_finite: bool


class Call(NamedTuple):
    """The arguments that both directions pass to the extension."""

    cell: Cell
    members: int | None
    shape: tuple[int, int, int]  # T, B, n
    dtype: DType
    order: Array | None  # of the sequences, if they are not sorted already
    route: Route | None
    place: Place
    arrays: Given  # by the names of the kernel, the state before marked steps among them
    law: tuple[str, float, tuple[Any, ...]]  # the activation, its slope, the settings of the cell
    lengths: Array | None
    reverse: bool
    marks: Array | None
    resident: bool  # one of the arrays is on the GPU, and so are the results

    def given(self) -> tuple[str, Any, tuple[Any, ...], Any, Any]:
        """The arguments as the extension takes them."""
        name, route = self.cell.name, self.route
        if self.inside:
            name, route = self.cell.dense, None
        transition = None if route is None else (route.object, route.arguments)
        steps = self.lengths, self.reverse, self.marks
        return name, transition, tuple(self.arrays.values()), self.law, steps

    @property
    def inside(self) -> bool:
        """Whether W stands in the cell's own array of matrices, as its last."""
        return self.route is not None and self.route.object == "dense" and bool(self.cell.dense)

    def empty(self, *shape: int) -> Array:
        """Room for a result, of every member of an ensemble."""
        return self.room(shape if self.members is None else (self.members, *shape), self.dtype)

    @property
    def room(self) -> Callable[[tuple[int, ...], DType], Any]:
        """What makes room for an array."""
        return gpu.Array.room if self.resident else np.empty

    def states(self, last: bool = False) -> Array:
        """Room for the states, or the last ones."""
        steps, batch, n = self.shape
        width = self.cell.width * n
        return self.empty(batch, width) if last else self.empty(steps, batch, width)

    def memory(self) -> Array | None:
        """Room for the memory after the states, if the cell has one."""
        _, batch, n = self.shape
        return self.empty(batch, n, n) if self.cell.memory(*self.law[2]) else None

    def saved(self) -> Array | None:
        """Room for what forward saves; on the GPU backward begins from the states."""
        count = self.cell.saved(*self.law[2])
        steps, batch, n = self.shape
        return self.empty(count, steps, batch, n) if count and self.place != "gpu" else None

    def member(self, i: int) -> "Call":
        """The call of the i-th member alone."""
        part: Callable[[Any], Any] = lambda a: None if a is None else a[i if len(a) > 1 else 0, ...]
        route = self.route
        route = None if route is None else route._replace(arguments=tuple(map(part, route.arguments)))
        arrays = {name: part(a) for name, a in self.arrays.items()}
        return self._replace(members=None, route=route, arrays=arrays, marks=part(self.marks))

    def run(self, states: Any, memory: Array | None = None, saved: Array | None = None) -> None:
        """Fills the states, or what is wanted of them, and the rest."""
        _core.sequence(*self.given(), (states, memory, saved), self.place, None, self.members)


# ---------------------------------------------------------------- the two directions


def states_of(
    cell: Cell,
    transition: Operator | None,
    arrays: dict[str, Any],
    options: Options,
    output: str,
    packed: Form | None = None,
) -> tuple[Array, Array | None]:
    """The states (T, B, width n) of a cell, or the last of each sequence, and the memory after them if it has one.

    `arrays` are the user's by name; `packed` brings them into the form of the kernel.
    """
    check.choice("output", output, *check_recurrence.OUTPUTS)
    call, _ = prepared(cell, transition, taken_of(cell, arrays), options, {}, packed)
    last, memory = output == "last", call.memory()
    if call.resident:
        check_recurrence.on_the_device(output)
    if last and call.place != "gpu":
        found = call.states(last=True)
        call.run((None, found, None, None), memory)
    else:
        found = call.states()
        call.run(found, memory)
        if last:
            found = _ends(found, call.lengths, call.reverse)
    if call.members is None and call.order is None:
        return found, memory
    back = None if call.order is None else np.argsort(call.order)
    found = in_order(found, back, -2)
    if call.members is not None and not last:
        found = ready(np.moveaxis(found, 0, 1), call.dtype)
    return found, None if memory is None else in_order(memory, back, -3)


def both_parts(
    cell: Cell, arrays: dict[str, Any], options: Options, output: str, packed: Form | None = None
) -> tuple[Array, Array]:
    """The states of a cell whose state has two parts."""
    first, second = np.split(states_of(cell, None, arrays, options, output, packed)[0], 2, -1)
    return np.ascontiguousarray(first), np.ascontiguousarray(second)


# ---------------------------------------------------------------- arguments


def taken_of(cell: Cell, arrays: dict[str, Any]) -> Given:
    """The arguments as arrays; the bias of the activation is real, and so is a cell with gates."""
    take = taken_real if cell.real else taken
    if _calls.resident(*arrays.values()):
        arrays = {name: _calls.single(a) for name, a in arrays.items()}
    given = {name: None if a is None and name not in cell.required else take(name, a) for name, a in arrays.items()}
    own_bias = given[OWN_BIAS]
    if own_bias is not None:
        check.real(OWN_BIAS, own_bias.dtype.name)
    return given


def parts_of(cell: Cell, name: str, value: Any) -> tuple[Array, ...]:
    """An argument with the shape of the states, as many arrays as a state has parts."""
    take = taken_real if cell.real else taken
    if cell.width == 1:
        return (take(name, value),)
    if not isinstance(value, (tuple, list)) or len(value) != cell.width:
        check.kind(name, f"{cell.width} arrays, one for each part of the state", value)
    return tuple([take(name, a) for a in value])


def checked(
    cell: Cell, transition: Operator | None, given: Given, options: Options, results: dict[str, Sequence[Array]]
) -> Checked:
    """Check all arguments except marks and the values of arrays; `results` are the states and their cotangent."""
    if (cell.operator or cell.matrices) and not isinstance(transition, Operator):
        check.kind("transition", "an operator (Householder, Cayley, Dense, ...)", transition)
    activation, check_finite = options.activation, check.flag("check_finite", options.check_finite)
    check.flag("reverse", options.reverse)
    own_state = None if options.start_state is None else parts_of(cell, START_STATE, options.start_state)
    dtype = common(None if transition is None else transition.dtype, *given.values(), *(own_state or ()))
    steps, batch, n, members = cell.known(
        tuple([None if a is None else a.shape for a in given.values()]),
        None if transition is None else (transition.shape, transition.batch_shape),
        dtype.kind == "c",
        activation,
        options.slope,
    )
    if transition is not None and not cell.operator:
        check_recurrence.gated_transition(transition.shape, transition.dtype.name, n)
    for name, parts in results.items():
        for a in parts:
            if members is None:
                check.exact(name, a.shape, (steps, batch, n), "(T, B, n)")
            else:
                check.exact(name, a.shape, (steps, members, batch, n), "(T, E, B, n)")
            field_of_result(name, a, dtype)
    lengths = None
    if options.lengths is not None:
        lengths = taken_integers("lengths", options.lengths)
        check_recurrence.lengths_shape(lengths.shape, batch)
        check_recurrence.lengths_range(int(lengths.min()), int(lengths.max()), steps)
        lengths = lengths.astype(np.int64)
    return Checked(members, (steps, batch, n), dtype, own_state, lengths, check_finite)


def prepared(
    cell: Cell,
    transition: Operator | None,
    given: Given,
    options: Options,
    results: dict[str, Sequence[Array]],
    packed: Form | None,
    memory_ct: Array | None = None,
) -> tuple[Call, tuple[Array, ...] | None]:
    """Check all arguments and bring them into the form of the kernel; the state before marked steps, as given."""
    right = checked(cell, transition, given, options, results)
    (steps, batch, n), members, place = right.shape, right.members, serve_cell(cell, options.backend)
    dtype = common(right.dtype, *results.get("ct", ()))
    if memory_ct is not None:
        lead = () if members is None else (members,)
        check.exact("ct", memory_ct.shape, (*lead, batch, n, n), "(B, n, n)" if members is None else "(E, B, n, n)")
    order, lengths = by_length(right.lengths, steps)
    resident = False
    if place == "gpu":
        order, lengths = None, lengths if order is None else right.lengths  # it takes them in any order
        _calls.fits(dtype, x=given["x"])
        held = () if transition is None else transition._members()
        resident = _calls.resident(*given.values(), *[a for own in results.values() for a in own], *held)
    own_state, marks = right.start_state, None
    for a in own_state or ():
        check_recurrence.start_state(options.starts, a.shape, right.shape, members)
    if options.starts is not None:
        check_recurrence.starts_served(gpu=place == "gpu")
        marks = _marks.taken(options.starts, steps, batch, members)
    if right.check_finite:
        if transition is not None:
            transition._check_held(True)
        for name, array in given.items():
            finite(name, array)
        for name, parts in results.items():
            for a in parts:
                finite(name, a)
        for a in own_state or ():
            finite(START_STATE, a if a.ndim < 3 + (members is not None) else _marks.at(a, options.starts))
        finite("ct", memory_ct)
    arrays = _kernel_arrays(cell, given, right, packed)
    for name, array in arrays.items():
        if array is not None:
            if order is not None and name in _SEQUENCES:
                array = array.take(order, _SEQUENCES[name])
            arrays[name] = ready(array, real_type(dtype) if name == OWN_BIAS else dtype)
    route = (
        None
        if transition is None
        else route_of(transition, dtype, steps, batch, place, gated=not cell.operator, resident=resident)
    )
    law = options.activation, float(options.slope), options.settings
    marks = None if marks is None else ready(in_order(marks, order, -1), np.dtype(np.int64))
    call = Call(
        cell, members, right.shape, dtype, order, route, place, arrays, law, lengths, options.reverse, marks, resident
    )
    if call.inside and route is not None:
        (matrix,), name = route.arguments, cell.matrices
        own = arrays[name]
        arrays[name] = ready(joined([own, matrix if members is None else matrix[:, None]], -3), dtype)
    return call, own_state


def serve_cell(cell: Cell, backend: str | None) -> Place:
    """Where a call of a cell computes."""
    if cell.cpu_only:
        only_cpu(backend)
        backend = "cpu"
    return serve(backend)


def _kernel_arrays(cell: Cell, given: Given, right: Checked, packed: Form | None) -> Given:
    """The arrays with the members as first axis and one entry per sequence, the parts of a state side by side."""
    members, (_, batch, n), _, own_state, *_ = right
    arrays = given.copy()
    if members is not None:
        for array in cell.arrays:
            a = given[array.name]
            if a is not None and array.name == "x":
                arrays["x"] = np.moveaxis(a, 1, 0)
            elif a is not None and a.ndim == array.rank and not array.axes.startswith("B "):
                arrays[array.name] = a[None]
    for name, rank in cell.each:
        a = given[name]
        if a is not None:
            arrays[name] = _each(a, batch, rank, members, name)
    own = None if own_state is None else _marks.before(joined(own_state, -1), batch, members)
    if len(cell.state) > 1:
        parts, (first, *others) = [arrays[name] for name in cell.state], cell.state
        held, whole = [a for a in parts if a is not None], None
        if held:
            zero = np.zeros((*held[0].shape[:-1], n), held[0].dtype)
            whole = joined([zero if a is None else a for a in parts], -1)
        joint = {first: ("h0", whole)}
        arrays = dict([joint.get(name, (name, a)) for name, a in arrays.items() if name not in others])
    if packed is not None:
        arrays = packed(arrays)
    arrays[START_STATE] = own  # the last
    return arrays


def split_state(cell: Cell, bars: Given) -> None:
    """The gradient of the kernel's initial state, by the names of its parts."""
    if len(cell.state) > 1:
        whole = bars["h0"]
        parts = [None] * cell.width if whole is None else np.split(whole, cell.width, -1)
        bars |= dict(zip(cell.state, parts, strict=True))


def _each(a: Array, batch: int, rank: int, members: int | None, name: str = START_STATE) -> Array:
    """An array with an entry for each sequence, of `rank` axes, and the members as first axis."""
    core = a.shape[a.ndim - rank :]
    if members is None:
        return a if a.ndim > rank and a.shape[0] == batch else broadcast(a, (batch, *core), name)
    lead = a.shape[0] if a.ndim == rank + 2 else 1
    return np.broadcast_to(a, (lead, batch, *core))


def joined(parts: Sequence[Array], axis: int) -> Array:
    """Arrays side by side along that axis, counted from the last; those before it are broadcast."""
    lead = np.broadcast_shapes(*[a.shape[:axis] for a in parts])
    return np.concatenate([np.broadcast_to(a, (*lead, *a.shape[axis:])) for a in parts], axis)


def of_kernel(a: Array, call: Call) -> Array:
    """An array of the states' shape as the kernel takes it."""
    a = a if call.members is None else np.moveaxis(a, 1, 0)
    return ready(in_order(a, call.order, -2), call.dtype)


def in_order(a: Array, order: Array | None, axis: int) -> Array:
    return a if order is None else a.take(order, axis)


def _ends(states: Array, lengths: Array | None, reverse: bool) -> Array:
    """The last state of each sequence."""
    if reverse or lengths is None:
        return states[..., 0 if reverse else -1, :, :].copy()
    return states[..., lengths - 1, np.arange(states.shape[-2]), :]
