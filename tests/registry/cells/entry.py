"""What the registry says of a cell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import reference as ref
from registry.entry import is_complex, real_of

#: The arrays that are matrices: their products are of order 1.
MATRICES = ("w", "u", "input_weight", "embed_weight", "r0")
ACTIVATIONS = ("tanh", "relu", "leaky_relu", "identity", "oplu", "modrelu", "modrelu_realrep")


@dataclass(frozen=True)
class Transition:
    """An operator as the recurrent matrix, or one of them."""

    shapes: Callable  # n -> the shapes of its arguments
    build: Callable  # (face, *arguments) -> the operator
    matrix: Callable  # arguments -> W, in NumPy


REFLECTION, REFLECTIONS = (
    Transition(lambda n, m=m: [(n, m)], lambda face, u: face.Householder(u), ref.householder) for m in (1, 3)
)
CAYLEY = Transition(lambda n: [(n * (n - 1) // 2,)], lambda face, a: face.Cayley(a), ref.cayley)
ROTATION = Transition(lambda n: [(n,), (n,)], lambda face, *ends: face.Rotation(*ends), ref.rotation)


def on_the_diagonal(upper):
    """Cayley transforms along the diagonal of one matrix."""
    h, k = len(upper), len(ref.cayley(upper[0]))
    w = np.zeros((h, k, h, k), ref.wide(upper).dtype)
    w[range(h), :, range(h)] = [ref.cayley(one) for one in upper]
    return w.reshape(h * k, h * k)


def _two_if_even(n):
    h = 1 if n % 2 else 2
    return [(h, n // h * (n // h - 1) // 2)]


BLOCKS = Transition(_two_if_even, lambda face, a: face.BlockDiagonal(operator=face.Cayley(a)), on_the_diagonal)
DENSE = Transition(lambda n: [(n, n)], lambda face, w: face.Dense(w), ref.dense)


@dataclass(frozen=True)
class Variant:
    """Settings of a cell."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)  # arrays of this variant alone
    transition: Transition | None = None
    dtype: type = np.float64
    loss: float = 1.0  # how much more a rounding grows than in one product per step
    numpy: bool = True  # of the NumPy face too


@dataclass(frozen=True)
class Cell:
    """A cell: its arrays, by name and in the sizes T, B, d and n, its variants and its definition in NumPy."""

    stem: str
    arrays: Mapping[str, str]
    states: Callable  # arrays and options -> states (T, B, n), the rows of a memory behind them
    variants: Mapping[str, Variant]
    first: tuple[str, ...] = ("h0",)  # the arrays that are the initial state
    activations: tuple[str, ...] = ACTIVATIONS
    mistakes: tuple = ()  # wrong settings, for n = 4, the error and words of its message
    units: Callable = lambda n, d: n  # a layer draws within 1 / sqrt of these, unless it draws by Glorot


@dataclass(frozen=True)
class CellCase:
    """A variant of a cell."""

    cell: Cell
    variant: str

    def __str__(self):
        return f"{self.cell.stem}, {self.variant}"

    @property
    def kind(self):
        return self.cell.variants[self.variant]

    @property
    def plain(self):
        """Whether it stands for its cell where one variant is enough."""
        return self.variant == next(iter(self.cell.variants))

    @property
    def memory(self):
        return bool(self.kind.settings.get("lam"))

    @property
    def own(self):
        """The names of the transition's arguments."""
        count = 0 if self.kind.transition is None else len(self.kind.transition.shapes(8))
        return [f"transition {k}" for k in range(count)]

    def dtype(self, single=False):
        wide = np.dtype(self.kind.dtype)
        return np.dtype({"f": np.float32, "c": np.complex64}[wide.kind]) if single else wide

    def draw(self, rng, n=4, steps=3, batch=2, d=2, activation="tanh", members=None, single=False, marked=False):
        """Arrays by name; with members all have them in front, x behind its steps. `marked` adds a start_state, and
        "each" one for every step and with members behind it."""
        sizes, dtype, lead = (
            {"T": steps, "B": batch, "d": d, "n": n},
            self.dtype(single),
            () if members is None else (members,),
        )
        shapes = dict(zip(self.own, self.kind.transition.shapes(n), strict=True)) if self.own else {}
        for name, axes in {**self.cell.arrays, **self.kind.more}.items():
            shapes[name] = tuple(int(a[:-1] or 1) * sizes[a[-1]] if a[-1] in sizes else int(a) for a in axes.split())
        units = {"modrelu": n, "modrelu_realrep": n // 2}.get(activation)
        if units is not None and self.cell.activations:
            shapes["activation_bias"] = (units,)
        if marked:
            shapes["start_state"] = ((steps,) if marked == "each" else ()) + (batch, n * len(self.cell.first))
        drawn = {}
        for name, shape in shapes.items():
            timed = name == "x" or (name == "start_state" and marked == "each")
            a = ref.normal(rng, *((steps, *lead, *shape[1:]) if timed else (*lead, *shape)), dtype=dtype)
            scale = shape[-1] ** 0.5 if name in MATRICES or (len(shape) > 1 and name in self.own) else 1
            drawn[name] = (a / max(scale, 1)).astype(dtype)
            if name == "activation_bias":
                drawn[name] = (0.1 + np.abs(a)).astype(real_of(dtype))
        return drawn

    def options(self, activation="tanh"):
        """The keywords that choose an activation."""
        own = {"slope": 0.4} if activation == "leaky_relu" else {}
        return {"activation": activation, **own} if self.cell.activations else {}

    def activations(self):
        """Those that this variant has."""
        paired = ("modrelu_realrep",) if is_complex(self.kind.dtype) else ()
        return [name for name in self.cell.activations if name not in paired] or ["tanh"]

    def given(self, arrays, face):
        """Positional and named arguments of the function of a face."""
        own = [arrays[name] for name in self.own]
        lead = [self.kind.transition.build(face, *own)] if own else []
        given = {name: a for name, a in arrays.items() if name not in self.own} | dict(self.kind.settings)
        if "start_state" in given and len(self.cell.first) > 1:
            state = given["start_state"]
            n = state.shape[-1] // 2
            given["start_state"] = state[..., :n], state[..., n:]
        return lead, given

    def call(self, face, arrays, **options):
        lead, given = self.given(arrays, face)
        results = getattr(face, self.cell.stem)(*lead, **given, **options)
        return beside(results) if len(self.cell.first) > 1 else joined(results)

    def reference(self, arrays, **options):
        """The states by the definition, in double precision."""
        own = [arrays[name] for name in self.own]
        rest = {name: a for name, a in arrays.items() if name not in self.own}
        w = {"transition": self.kind.transition.matrix(*own)} if own else {}
        return self.cell.states(**w, **rest, **self.kind.settings, **options)

    def begin(self, state):
        """The arrays of an initial state (B, n), or (B, 2n) where there are two."""
        return dict(zip(self.cell.first, np.split(state, len(self.cell.first), -1), strict=True))


def beside(parts):
    """Both parts of a state in one array, of NumPy and of torch."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, -1)
    import torch

    return torch.cat(parts, -1)


def joined(results):
    """States (T, B, n), and the rows of a memory behind them, of NumPy and of torch."""
    states, memory = results if isinstance(results, tuple) else (results, None)
    if memory is None:
        return states
    states = states if states.ndim == memory.ndim else states[None]
    if isinstance(states, np.ndarray):
        return np.concatenate((states, np.moveaxis(memory, -2, 0)))
    import torch

    return torch.cat((states, memory.movedim(-2, 0)))
