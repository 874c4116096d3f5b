"""Every cell of the registry in every form of a call: lengths, directions, marks, ensembles, checkpoints."""

import inspect
from dataclasses import dataclass

import numpy as np

import isometry
import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Close, Numbers, Slope
from isometry._cells import public
from registry import OBJECTS, is_complex
from registry.cells import CELLS, CellCase
from registry.cells.entry import BLOCKS, CAYLEY, DENSE, REFLECTION, REFLECTIONS, ROTATION

TRANSITIONS = (None, REFLECTION, REFLECTIONS, CAYLEY, ROTATION, BLOCKS, DENSE)  # single operators, of any n
TRIES = 8  # draws to avoid values too close to a kink, the last ones with tanh
AMPLIFIED = 50.0  # most that the steps may enlarge a rounding
STEP = 1e-6  # of differences


def cells(choices, face):
    """States, or gradients, that the reference can judge."""
    cell = choices.of(list(CELLS.values()))
    case = CellCase(cell, choices.of([name for name, own in cell.variants.items() if own.transition in TRANSITIONS]))
    single, members = choices.once_in(2), choices.between(1, 3) if choices.once_in(4) else None
    n, steps, batch = draw.SMALL.size(choices), choices.between(1, 4), choices.between(1, 3)
    one = 2 if case.own or case.kind.settings.get("eta") else 1  # a state of length eta and one unit is a sign
    sizes = {"n": max(n, one), "steps": steps, "batch": batch, "d": choices.of((1, 2, 3, 0))}
    sizes |= {"members": members, "single": single}
    options = around(choices, face, case, sizes)
    marked = choices.of((False, True, "each")) if "starts" in options else False
    marked = marked if marked != "each" or not case.memory else True
    activation = choices.of(["tanh", *(case.activations() if sizes["n"] % 2 == 0 else ["leaky_relu", "modrelu"])])
    kept = [choices.once_in(2) for _ in range(16)]
    for k in range(TRIES):
        name = activation if k < TRIES // 2 and activation in case.activations() else "tanh"
        kept = kept if k < TRIES // 2 else [True] * len(kept)
        drawn = arrays(choices.rng, case, sizes, name, marked, options.get("starts"), kept, k)
        problem = Problem(case, *drawn, options | case.options(name), sizes["n"])
        if problem.judged():
            return finished(choices, face, problem, sizes)
    return cells(choices, face)


def around(choices, face, case, sizes):
    """The keywords of every cell."""
    steps, batch, options = sizes["steps"], sizes["batch"], {}
    if choices.once_in(2):
        lengths = [choices.between(1, steps) for _ in range(batch)]
        options["lengths"] = np.array(lengths, choices.of(draw.INTEGERS)) if choices.once_in(2) else lengths
    if choices.once_in(2):
        options["reverse"] = choices.of((True, False))
    if choices.once_in(2) and not (case.memory and face.name == "numpy"):
        of_each = sizes["members"] is not None and choices.once_in(2)
        lead = (sizes["members"],) if of_each else ()
        options["starts"] = choices.rng.random((steps, *lead, batch)) < choices.of((0.5, 0.2, 1.0, 0.0))
    return options


def arrays(rng, case, sizes, activation, marked, starts, kept, attempt):
    """Arrays by name, some of them left out, with structure or for all; and the names of those of one member each."""
    drawn = case.draw(rng, **sizes, activation=activation, marked=marked)
    needed = {*case.own, *(a.name for a in public(case.cell.stem).arrays if a.needed), "activation_bias", "start_state"}
    one, choice = list(case.cell.arrays)[1], iter(kept * 3)  # an array that says how many members there are
    given = {name: a for name, a in drawn.items() if name in needed or next(choice)}
    if marked == "each" and next(choice):  # entries without a mark are not read
        state = given["start_state"]
        marks = starts if state.ndim == starts.ndim + 1 else starts[:, None]
        given["start_state"] = np.where(marks[..., None], state, np.nan).astype(state.dtype)
    each = set(given) if sizes["members"] is not None else set()
    for name in set(given) - {*case.own, one, "start_state"}:
        if each and next(choice):
            given[name] = given[name][:, :1] if name == "x" else given[name][0]
            each -= {name}
        elif not each and name in case.cell.first and next(choice):
            given[name] = given[name][0]
    if attempt < TRIES // 2 and next(choice):  # entries with structure, where they keep their size
        for name in set(given) - {*case.own, "activation_bias", "r0", "start_state"}:
            a = given[name]
            size = np.abs(a).max(initial=0)
            given[name] = (draw.structured(rng, a.shape, a.dtype) * min(1, size)).astype(a.dtype) if next(choice) else a
    return given, frozenset(each)


@dataclass
class Problem:
    """The arrays and keywords of one call, and the results by the reference."""

    case: CellCase
    arrays: dict
    each: frozenset  # arrays of one member each
    options: dict
    n: int

    @property
    def members(self):
        return len(self.arrays[next(iter(self.each - {"x", "start_state"}))]) if self.each else None

    @property
    def dtype(self):
        return self.arrays["x"].dtype

    @property
    def width(self):
        """Numbers of a state."""
        return self.n * len(self.case.cell.first)

    def value(self, **changed):
        """The states, of an ensemble (T, E, B, n), with the rows of a memory behind them."""
        given = self.arrays | changed
        if self.members is None:
            return single(self.case, given, self.options)
        return np.stack([single(self.case, *self.of_member(given, i)) for i in range(self.members)], 1)

    def of_member(self, given, i):
        own = {name: a[i] if name in self.each and name not in TIMED else a for name, a in given.items()}
        own["x"] = given["x"][:, i if given["x"].shape[1] > 1 else 0]
        if "start_state" in given:
            state = given["start_state"]
            own["start_state"] = state[:, i] if state.ndim == 4 else state[i]
        starts = self.options.get("starts")
        of_each = starts is not None and starts.ndim == 3
        return own, self.options | {"starts": starts[:, i]} if of_each else self.options

    def slope(self, ct, directions, at=None, step=STEP):
        """The change of the product of states and cotangent per step in these directions, to either side."""
        at = self.arrays if at is None else at
        values = [
            np.vdot(ct, self.value(**{name: ref.wide(at[name]) + k * step * d for name, d in directions.items()})).real
            for k in (-1, 0, 1)
        ]
        return (values[1] - values[0]) / step, (values[2] - values[1]) / step

    def judged(self):
        """Whether no kink is near and the steps do not enlarge a rounding: noise changes the results by little."""
        eps, rng, value = float(np.finfo(self.dtype).eps), np.random.default_rng(0), self.value()
        ct = ref.normal(rng, *value.shape, dtype=value.dtype)
        size = max(1.0, float(np.linalg.norm(value)), float(np.linalg.norm(ct)))
        for _ in range(3):
            draws = {name: ref.normal(rng, *a.shape, dtype=a.dtype) for name, a in self.arrays.items()}
            noisy = {name: ref.wide(a) * (1 + 16 * eps * draws[name].real) for name, a in self.arrays.items()}
            gap = np.linalg.norm(self.value(**noisy) - value)
            slopes = [self.slope(ct, draws), self.slope(ct, draws, noisy)]
            moved, kink = abs(sum(slopes[0]) - sum(slopes[1])), abs(slopes[0][0] - slopes[0][1])
            if not (gap <= 16 * AMPLIFIED * eps * size and moved <= (16 * AMPLIFIED * eps + 1e-6) * size):
                return False
            if not kink <= 1e-3 * size:
                return False
        return True

    def loss(self, law):
        return law(self.dtype, self.n, len(self.arrays["x"])) * AMPLIFIED

    def split(self, value):
        """The results by name: states, and the second part of a state or the memory."""
        steps = len(self.arrays["x"])
        if self.case.memory:
            return {"value": value[:steps], "other": np.moveaxis(value[steps:], 0, -2)}
        if len(self.case.cell.first) > 1:
            return {"value": value[..., : self.n], "other": value[..., self.n :]}
        return {"value": value}

    def states(self, last):
        found = self.split(self.value())
        if last:
            rows = np.arange(found["value"].shape[-2])
            ends = np.asarray(self.options.get("lengths", len(self.arrays["x"])), int)
            at = np.broadcast_to(0 if self.options.get("reverse") else ends - 1, rows.shape)
            pick = lambda a: np.moveaxis(a, -2, 1)[at, rows] if a.ndim == 3 else np.moveaxis(a[at, :, rows], 0, -2)
            found = {k: a if k == "other" and self.case.memory else pick(a) for k, a in found.items()}
        return {k: Close(a, self.dtype, self.loss(tol.sequence)) for k, a in found.items()}

    def gradients(self, ct, names):
        """Each array's by the slope along directions."""
        loss, size = self.loss(tol.sequence_gradient) + 1e-6, max(1.0, float(np.linalg.norm(ct)))
        slope = lambda name: lambda direction: sum(self.slope(ct, {name: direction})) / 2
        return {names[name]: Slope(a, slope(name), loss, size) for name, a in self.arrays.items()}


TIMED = ("x", "start_state")


def single(case, given, options):
    """One call by the reference, which knows a state for all marks: with one for each, piece by piece."""
    state = given.get("start_state")
    if state is None or state.ndim < 3:
        return case.reference(given, **options)
    x, starts, reverse = given["x"], options["starts"], options.get("reverse", False)
    rest = {name: a for name, a in given.items() if name not in (*case.cell.first, *TIMED)}
    law = {name: value for name, value in options.items() if name not in ("lengths", "starts")}
    states = np.zeros((*x.shape[:2], state.shape[-1]), np.result_type(*map(ref.wide, given.values())))
    for s in range(x.shape[1]):
        for order, start in ref.pieces(s, options.get("lengths", [len(x)] * (s + 1))[s], reverse, starts):
            first = {name: ref.initial(given[name], s, 0)[None] for name in case.cell.first if name in given}
            if start == "start_state":
                first = case.begin(state[order[0] + reverse, s][None])
            at = sorted(order)
            states[at, s] = case.reference({**rest, **first, "x": x[at, s][:, None]}, **law)[:, 0]
    return states


# ---------------------------------------------------------------- the call


def finished(choices, face, problem, sizes):
    case, alone = problem.case, problem.members is None
    stem, memory = case.cell.stem, case.memory
    held, cls, names = operator(case)
    renamed = {name: held.get(name, name) for name in problem.arrays}
    given = {renamed[name]: a for name, a in problem.arrays.items()}
    keywords = {**problem.options, **case.kind.settings}
    call = Call(
        stem,
        given | keywords,
        sites(problem, sizes) if alone else {},
        expected=lambda: problem.states(False),
        cls=cls,
        build=on_the_diagonal(cls) if case.kind.transition is BLOCKS else None,
        held=names,
        unwelcome=unwelcome(problem) if alone else {},
        wanted=tuple(given),
        complex=is_complex(problem.dtype),
        split=problem.n if len(case.cell.first) > 1 else 0,
    )
    if choices.once_in(2) and not (memory and face.name == "numpy"):
        value = problem.value()
        shape = (sizes["steps"], *value.shape[1:])
        ct = draw.numbers(choices.rng, *shape, dtype=problem.dtype)
        whole = np.concatenate([ref.wide(ct), np.zeros_like(value[len(ct) :])])
        call.function = f"{stem}_vjp"
        call.arguments |= {"states": value[: len(ct)].astype(problem.dtype), "ct": ct}
        call.arguments |= {"check_states": False} if face.name == "numpy" else {}
        real = {"real": True} if public(stem).real else {"real_as_result": True}
        call.sites |= {"ct": draw.exactly(shape, **real)} if alone and not call.split else {}
        prefix = {name: f"transition.{held[name]}" if name in held else name for name in problem.arrays}
        call.expected = lambda: problem.gradients(whole, prefix)
    elif choices.once_in(3):
        call.arguments["output"] = "last"
        call.expected = lambda: problem.states(True)
    if face.name == "torch" and choices.once_in(3):
        call.arguments["checkpoint"] = choices.of(("none", "sqrt") if alone and not memory else ("none",))
    function = getattr(face.package, face.function(call))
    defaults = {name: own.default for name, own in inspect.signature(function).parameters.items()}
    if "activation" in keywords and keywords["activation"] == defaults["activation"]:
        del call.arguments["activation"]
    absent = {*case.cell.arrays} - {*given}
    call.arguments |= {name: None for name in absent if defaults[name] is inspect.Parameter.empty}
    draw.finished(choices, face, call)
    if call.split:  # no lists, which have no halves
        call.layouts = {name: way if way != "list" else "plain" for name, way in call.layouts.items()}
    return call


def on_the_diagonal(cls):
    """A stack, whose members are the blocks of the transition."""
    return lambda package, held: package.BlockDiagonal(operator=getattr(package, cls)(**held))


def operator(case):
    """The names of a transition's arguments in the registry -> those of its class, which is named too."""
    if not case.own:
        return {}, "", ()
    shapes = case.kind.transition.shapes(8)
    operator = case.kind.transition.build(isometry, *[np.ones(shape) for shape in shapes])
    cls = type(getattr(operator, "operator", operator)).__name__
    entry = next(entry for entry in OBJECTS.values() if entry.cls == cls)
    names = tuple(entry.arguments)[: len(shapes)]
    return dict(zip(case.own, names, strict=True)), cls, names


def sites(problem, sizes):
    """What is valid in the place of each array; one more axis is that of the members of an ensemble."""
    arrays, case, stem = problem.arrays, problem.case, problem.case.cell.stem
    declared = public(stem).arrays
    steps, batch, width, d = sizes["steps"], sizes["batch"], problem.width, sizes["d"]
    needed, real = {a.name for a in declared if a.needed}, public(stem).real
    of_features = "|".join(a.name for a in declared[1:] if a.axes.endswith("d"))
    starts = [(*axes, width) for axes in ((batch,), (1,), (), (steps, batch), (steps, 1))]
    found = {}
    ranks = {a.name: a.rank for a in declared}
    each = {a.name: a.shared for a in declared if a.axes.startswith("B ")}
    for name, a in arrays.items():
        rank, fits, more = a.ndim, lambda s, own=a.shape: s[1:] == own, {"required": name in needed}
        if name == "x":
            fits = lambda s: len(s) == 4 or (len(s) == 3 and min(s[:2]) > 0 and s[2] == d)
            more |= {"blames": {-1: of_features}, "precision": False}
        elif name == "start_state":
            rank, fits = 1, lambda s: s in starts
        elif name in each:
            one = a.shape[-(ranks[name] - 1) :]
            served = {(batch, *one), one, *([(1, *one)] if each[name] else [])}
            rank, fits = len(one), lambda s, served=served, own=(batch, *one): s in served or s[1:] == own
        halves = name == "start_state" and (len(case.cell.first) > 1 or a.ndim == 3)  # or entries that are not read
        if name not in case.own and not halves:  # the mistakes of a transition are made with operators
            found[name] = Numbers(rank, fits, real=real or name == "activation_bias", **more)
    return found


def unwelcome(problem):
    """What only other variants or activations take."""
    case, n = problem.case, problem.n
    own = {} if "activation_bias" in problem.arrays or not case.cell.activations else {"activation_bias": "n"}
    for other in case.cell.variants.values():
        own |= {name: axes for name, axes in other.more.items() if name not in case.kind.more}
    sizes = {"n": n, "B": problem.arrays["x"].shape[1]}
    real = problem.dtype.type(0).real.dtype
    return {name: np.zeros([sizes[axis] for axis in axes.split()], real) for name, axes in own.items()}
