"""Every object of the registry: its arguments at random, and the calls of its methods."""

from functools import cache, cached_property, partial

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Close, Numbers, Orthogonal, Slope, WithNan
from registry import OBJECTS, Case, is_complex, members, real_of
from subjects import Subject, fold

FUNCTIONS = ("matrix", "apply", "apply_adjoint", "apply_vjp", "matrix_vjp")


class Drawn(Subject):
    """An operator with the reference's results; a stack may be empty."""

    def __init__(self, stem, arguments, n, m, units, silent):
        # The variants are for the laws: here the arguments themselves are drawn.
        super().__init__(Case(stem, "", None), arguments, n=n)
        self.__dict__.update(m=m, units=units, silent=silent, entry=OBJECTS[stem])

    @property
    def options(self):
        return self.entry.options(self.n, self.m)

    @property
    def dtype(self):
        kinds = [a.dtype for a in self.arguments.values()]
        turned = any(self.entry.arguments[k].declared.angles for k in self.arguments)
        return np.result_type(*kinds, np.complex64) if turned else np.result_type(*kinds)

    @property
    def factors(self):
        return max(*self.shape, self.n + self.m, 4)

    @property
    def held(self):
        """The names of everything that an operator of the class may be built from."""
        return (*self.entry.arguments, *self.options)

    @property
    def graded(self):
        """The arguments with a gradient."""
        return tuple(k for k in self.arguments if k not in self.entry.fixed)

    @cached_property
    def condition(self):
        return float(self.entry.condition(**self.arguments, **self.options))

    @property
    def recurring(self):
        """A lower bound on how often the same direction recurs in the factors."""
        return max(1.0, self.m / self.n)

    @property
    def large(self):
        """Whether the reference's own gradient takes too long."""
        return self.n >= draw.LARGE.n[0]

    @property
    def shape(self):
        if self.entry.size:
            return self.entry.size(self.arguments)
        return (self.m, self.n) if self.entry.rectangular else (self.n, self.n)

    @cached_property
    def w(self):
        out = np.zeros((*self.batch_shape, *self.shape), complex if is_complex(self.dtype) else float)
        for index in members(self.batch_shape):
            out[index] = self.entry.reference({**self.member(index), **self.options})
        return out

    @cached_property
    def norm(self):
        return float(np.linalg.norm(self.w))

    def reference(self):
        return self.w

    def forward(self, dtype):
        return tol.forward(dtype, self.factors, self.condition)

    def pulled_back(self, w_bar, dtype, size):
        """Gradients of the arguments, each with its own tolerance; `size` is that of the cotangent of W."""
        names = [k for k in self.arguments if k not in (*self.entry.fixed, *self.silent)]
        # Cancellation leaves more rounding noise if the same few directions recur in many factors.
        floor = tol.FLOOR * size * self.recurring
        kinds = {k: draw.coarsest(self.arguments[k].dtype, dtype) for k in names}
        losses = {k: tol.gradient(kind, self.factors, self.condition) for k, kind in kinds.items()}
        if self.large:
            return {
                k: Slope(self.arguments[k], partial(self.slope, w_bar, k), losses[k] + tol.DIFFERENCES, floor)
                for k in names
            }
        grads = self.reference_matrix_vjp(w_bar)
        return {k: Close(grads[k], self.arguments[k].dtype, losses[k], floor, self.units.get(k, 1.0)) for k in names}

    def slope(self, w_bar, name, direction):
        """d/dt Re <w_bar, W> as one argument moves along a direction."""
        given = {**self.arguments, **self.options}
        moved = lambda t: self.entry.reference({**given, name: ref.wide(given[name]) + t * direction})
        return ref.slope_along(moved, w_bar)


# ---------------------------------------------------------------- arguments


def operator(choices, face, types, n, m, full=(), stem=None, hard=False, calm=False):
    """An operator, its arguments as given, and the possible faults of each."""
    stem = stem or choices.of([k for k, entry in OBJECTS.items() if entry.exists(n)])
    entry = OBJECTS[stem]
    m = max(m, 1) if entry.rectangular else m
    given, values, units, silent = {}, {}, {}, set()
    first = None
    for name in chosen(choices, entry, hard):
        argument = entry.arguments[name]
        if argument.needs_complex and not is_complex(first):
            continue
        # Arguments without gradient have the precision of the first argument.
        dtype = types.pick(argument.declared.real) if argument.declared.trained else real_of(first)
        dtype = np.result_type(dtype, np.complex64).type if argument.declared.kind == "complex" else dtype
        first = first or dtype
        lead = draw.part(choices, full)
        shape = (*lead, *argument.shape(n, m))
        a = np.asarray(filled(choices.rng, argument, shape, dtype))
        if argument.powers != (0, 0) and not calm and choices.once_in(3):
            low, high = argument.powers
            columns = (*shape[:-2], 1, shape[-1]) if argument.declared.rank == 2 else (*shape[:-1], 1)
            spread = columns if argument.directions else ()
            exponents = choices.rng.integers(low, high + 1, spread)
            a = draw.scaled(a, exponents)
            units |= {name: np.exp2(exponents)} if argument.directions else {}
        given[name] = a
        if not shape and argument.declared.real and choices.once_in(3):
            given[name], a = float(a), a.astype(real_of(first))
            silent |= set() if face.grades_numbers else {name}
        values[name] = a
    drawn = Drawn(stem, values, n, m, units, silent)
    return drawn, {**given, **drawn.options}, {k: site(drawn, k) for k in given}


def filled(rng, argument, shape, dtype):
    """Values of the argument's own kind; sometimes, where it may have any values, with the structure of a class."""
    if shape and not (argument.refused or argument.directions) and rng.integers(4) == 0:
        return draw.structured(rng, shape, dtype)
    return argument.fill(rng, shape, dtype)


def chosen(choices, entry, hard):
    """Names of arguments that are valid together, including the first."""
    names = []
    for name in entry.arguments:
        owner, _, k = name.partition(".")
        if k and int(k) and f"{owner}.{int(k) - 1}" not in names:
            continue
        alone = any(k in entry.rivals(name) for k in names)
        loose = hard and name in entry.declaration.loose
        if len(names) < entry.required or not (alone or loose or choices.once_in(2)):
            names.append(name)
    return names


@cache
def shapes(stem):
    """All shapes that the first argument of one operator may have, up to more than twice the sizes drawn."""
    argument = next(iter(OBJECTS[stem].arguments.values()))
    most = 2 * draw.LARGE.wide[1] + 2
    sizes = [n for n in range(1, most) if OBJECTS[stem].exists(n)]
    return {argument.shape(n, m) for n in sizes for m in range(OBJECTS[stem].rectangular, most)}


def site(drawn, name):
    """The properties of an operator's argument that follow from the registry alone."""
    entry, n, m = drawn.entry, drawn.n, drawn.m
    argument = entry.arguments[name]
    is_first = name == next(iter(entry.arguments))
    listed = "." in name
    others = [drawn.batch_of(k) for k in drawn.arguments if k != name]
    rank = argument.declared.rank

    def fits(shape):
        cut = len(shape) - rank
        if cut < 0:
            return False
        if listed:
            return 0 not in shape[cut:] and draw.broadcasts(shape[:cut], *others)
        free = is_first and "n" not in drawn.options
        own = tuple(s if s and k in argument.free else None for k, s in enumerate(shape[cut:]))
        plain = tuple(s or t for s, t in zip(own, argument.shape(n, m), strict=True))
        served = shape[cut:] in shapes(drawn.case.stem) if free else shape[cut:] == plain
        return served and draw.broadcasts(shape[:cut], *others)

    return Numbers(
        rank,
        fits,
        real=argument.declared.real,
        required=name in list(entry.arguments)[: entry.required] or listed,
        precision=not is_first,
        refused=argument.refused,
        blames=later(drawn, argument.declared),
    )


def later(drawn, declared):
    """axis -> the array among the options that its length is compared with, where the sizes are given beside."""
    if "n" not in drawn.options:
        return {}
    rows = drawn.entry.declaration.arguments
    at = rows.index(declared)
    bound = {axis for row in rows[:at] for axis in row.axes.split()}
    return {
        k - declared.rank: row.name
        for k, axis in enumerate(declared.axes.split())
        for row in rows[at + 1 :]
        if axis not in bound and axis in row.axes.split() and row.name in drawn.options
    }


def unwelcome(choices, drawn):
    """Absent arguments that must not be given, with values for them."""
    entry, given = drawn.entry, drawn.arguments
    first = next(iter(given.values())).dtype
    result = {}
    for name, argument in entry.arguments.items():
        exclusive = any(k in entry.rivals(name) for k in given)
        misplaced = argument.needs_complex and not is_complex(first)
        if name not in given and (exclusive or misplaced):
            shape = argument.shape(drawn.n, drawn.m)
            result[name] = np.asarray(argument.fill(choices.rng, shape, real_of(first)))
    return result


# ---------------------------------------------------------------- calls


def methods(choices, face, sizes=draw.SMALL):
    """A method of an operator, or of a stack of them, on rows of many magnitudes."""
    types, full, large = draw.Types(choices, face), sizes.leading(choices), sizes is draw.LARGE
    n, m = sizes.size(choices), choices.between(*sizes.m)
    drawn, given, sites = operator(choices, face, types, n, m, () if large else full, calm=large)
    function = choices.of(FUNCTIONS)
    call = Call(
        function,
        dict(given),
        sites,
        expected=dict,
        on="operator",
        cls=drawn.entry.cls,
        held=drawn.held,
        unwelcome=unwelcome(choices, drawn),
        wanted=drawn.graded,
        complex=is_complex(drawn.dtype),
    )
    arguments(choices, face, types, drawn, call, full)
    return draw.finished(choices, face, call)


def arguments(choices, face, types, drawn, call, full):
    """The arguments of the method besides the operator, and its result."""
    batch, (n_out, n_in), dtype = drawn.batch_shape, drawn.shape, drawn.dtype
    if call.function == "matrix":
        call.expected = lambda: {"value": Close(drawn.w, dtype, drawn.forward(dtype), tol.FLOOR * drawn.norm)}
        return
    if call.function == "matrix_vjp":
        ct = draw.cotangent(choices, types, face, dtype, (*batch, n_out, n_in))
        call.arguments["ct"] = ct
        call.sites["ct"] = draw.exactly(ct.shape, real_as_result=True)
        kind = draw.coarsest(dtype, ct.dtype)
        call.expected = lambda: drawn.pulled_back(ref.wide(ct), kind, np.linalg.norm(ct))
        return
    features, others = (n_out, n_in) if call.function == "apply_adjoint" else (n_in, n_out)
    lead = draw.part(choices, full)
    exponents = draw.powers(choices, (*lead, 1))
    x = draw.scaled(types.numbers(*lead, features), exponents)
    call.arguments["x"] = x
    call.sites["x"] = Numbers(1, lambda shape: shape[-1:] == (features,) and draw.broadcasts(shape[:-1], batch))
    result = np.result_type(dtype, x.dtype)
    whole = np.broadcast_shapes(batch, lead)
    if call.function != "apply_vjp":
        call.expected = lambda: {"value": product(drawn, x, exponents, result, call.function == "apply_adjoint")}
        return
    ct = draw.cotangent(choices, types, face, result, (*whole, others))
    call.complex = is_complex(result)
    call.arguments["ct"] = ct
    call.sites["ct"] = draw.exactly(ct.shape, real_as_result=True)
    call.wanted = (*call.wanted, "x")
    call.expected = lambda: pulled(drawn, x, ct, draw.coarsest(result, ct.dtype))


def product(drawn, x, exponents, dtype, adjoint):
    w = np.swapaxes(drawn.w, -1, -2).conj() if adjoint else drawn.w
    value = np.einsum("...ij,...j->...i", w, ref.wide(x))
    units = np.exp2(-exponents.astype(float))
    return Close(value, dtype, drawn.forward(dtype), tol.FLOOR * drawn.norm * np.linalg.norm(x * units), units)


def pulled(drawn, x, ct, dtype):
    """Gradients of the arguments and of the rows."""
    full = (*ct.shape[:-1], x.shape[-1])
    rows, ct = ref.wide(np.broadcast_to(x, full)), ref.wide(ct)
    if drawn.batch_shape:
        w_bar = fold(ct[..., :, None] * rows[..., None, :].conj(), drawn.w.shape)
    else:
        w_bar = ct.reshape(-1, ct.shape[-1]).T @ rows.reshape(-1, rows.shape[-1]).conj()
    x_bar = fold(np.einsum("...ij,...i->...j", drawn.w.conj(), ct), x.shape)
    x_bar = x_bar if is_complex(x.dtype) else x_bar.real
    size = np.linalg.norm(np.linalg.norm(ct, axis=-1) * np.linalg.norm(rows, axis=-1))
    tolerance = drawn.forward(draw.coarsest(dtype, x.dtype))
    own = Close(x_bar, x.dtype, tolerance, tol.FLOOR * drawn.norm * np.linalg.norm(ct))
    return {**drawn.pulled_back(w_bar, dtype, size), "x": own}


def large(choices, face):
    """At sizes at which threads, blocks and the tails of tiles are used."""
    call = methods(choices, face, draw.LARGE)
    call.threads = choices.between(1, 3)
    return call


def unchecked(choices, face):
    """NaN in one argument, accepted with check_finite=False: it must appear in the result."""
    call = methods(choices, face)
    value = call.expected().get("value")
    places = [k for k in (*call.wanted, "x") if k in call.arguments and np.size(call.arguments[k])]
    if value is None or not value.value.size or not places:
        return call
    name = choices.of(places)
    spoiled = np.array(call.arguments[name])
    spoiled.reshape(-1)[choices.rng.integers(spoiled.size)] = np.nan
    spoiled = spoiled if isinstance(call.arguments[name], np.ndarray) else float(spoiled)
    call.arguments |= {name: spoiled, "check_finite": False}
    call.expected = lambda: {"value": WithNan(value.value.shape, value.dtype)}
    return call


def extremes(choices, face):
    """Parameters of any magnitude: an orthogonal matrix, or an error that names them."""
    types, stems = (
        draw.Types(choices, face),
        [k for k, entry in OBJECTS.items() if entry.declaration.unitary and entry.far],
    )
    n, m = draw.SMALL.size(choices), choices.between(*draw.SMALL.m)
    drawn, given, sites = operator(choices, face, types, n, m, stem=choices.of(stems), hard=True, calm=True)
    far = [k for k in drawn.arguments if drawn.entry.arguments[k].powers != (0, 0)]
    name = choices.of(far)
    a = drawn.arguments[name]
    most = int(0.95 * np.finfo(a.dtype).maxexp)
    a = draw.scaled(a, choices.rng.integers(-most, most, a.shape if choices.once_in(2) else ()))
    return draw.finished(
        choices,
        face,
        Call(
            "matrix",
            {**given, name: a},
            sites,
            expected=lambda: {"value": Orthogonal(drawn.shape, drawn.dtype, tol.UNITARITY * drawn.recurring)},
            on="operator",
            cls=drawn.entry.cls,
            held=drawn.held,
            may_refuse=rf"^({next(iter(given))}|{name}) must ",
        ),
    )
