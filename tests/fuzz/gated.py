"""The gated recurrent unit of the torch face, with all its options."""

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Close, Numbers
from fuzz.recurrences import AMPLIFIED, TRIES, marks, units

OPTIONS = ("reset", "activation", "slope", "lengths", "reverse", "starts", "backend")


def gated(choices, face):
    """States, or gradients, of a unit that the reference can judge."""
    dtype = choices.of((draw.F8, draw.F4))
    steps, batch, d = choices.between(1, 4), choices.between(1, 3), choices.of((1, 2, 3, 2, 1, 3, 2, 0))
    n = draw.SMALL.size(choices)
    keywords = options(choices, n, steps, batch)
    wanted = [choices.once_in(2), choices.once_in(2), choices.once_in(2), choices.once_in(2)]
    for _ in range(TRIES):
        unit = Unit(arrays(choices.rng, dtype, (n, steps, batch, d), keywords, *wanted), keywords)
        if unit.judged():
            break
    else:
        keywords = {**keywords, "activation": "tanh"}
        unit = Unit(arrays(choices.rng, dtype, (n, steps, batch, d), keywords, *wanted), keywords)
    given = unit.arrays if "b" in unit.arrays else {**unit.arrays, "b": None}
    call = Call(
        "gru",
        {**given, **{k: v for k, v in keywords.items() if k != "activation" or v != "tanh"}},
        unit.sites(),
        expected=lambda: {"value": unit.result()},
        options=OPTIONS,
        unwelcome=unit.unwelcome(),
        wanted=tuple(unit.arrays),
        sizes={"n": n, "T": steps, "B": batch},
        checks=False,
    )
    if choices.once_in(2):
        ct = draw.numbers(choices.rng, steps, batch, n, dtype=dtype)
        call.function = "gru_vjp"
        call.arguments["ct"] = ct
        call.expected = lambda: unit.gradients(ct)
    return draw.finished(choices, face, call)


def options(choices, n, steps, batch):
    """The keywords that are not arrays of real numbers."""
    paired = ("oplu", "oplu_halves", "modrelu_realrep") if n % 2 else ()
    keywords = {"activation": choices.of(["tanh", *(name for name in ref.NAMES if name not in paired)])}
    if choices.once_in(2):
        keywords["reset"] = choices.of(("after", "before"))
    if choices.once_in(2):
        keywords["slope"] = choices.of((0.1, 0.0, 0.4, 0))
    if choices.once_in(2):
        keywords["lengths"] = [choices.between(1, steps) for _ in range(batch)]
    if choices.once_in(2):
        keywords["reverse"] = choices.of((True, False))
    return keywords | marks(choices, steps, batch)


def arrays(rng, dtype, sizes, keywords, with_b, with_h0, for_all, with_start):
    """Inputs, weights that do not let the states grow, biases and initial states of order 1."""
    n, steps, batch, d = sizes
    drawn = {
        "x": draw.numbers(rng, steps, batch, d, dtype=dtype),
        "w": draw.numbers(rng, 3, n, n, dtype=dtype) / dtype(np.sqrt(n)),
        "u": draw.numbers(rng, 3, n, d, dtype=dtype),
    }
    if with_b:
        drawn["b"] = draw.numbers(rng, 3, n, dtype=dtype)
    if with_h0:
        drawn["h0"] = draw.numbers(rng, *((n,) if for_all else (batch, n)), dtype=dtype)
    if "starts" in keywords and with_start:
        drawn["start_state"] = draw.numbers(rng, *((batch, n) if for_all else (n,)), dtype=dtype)
    if keywords.get("reset") == "after" and for_all:
        drawn["hidden_bias"] = draw.numbers(rng, n, dtype=dtype)
    own = units(keywords["activation"], n)
    if own is not None:
        drawn["activation_bias"] = draw.numbers(rng, own, dtype=dtype) / 4
    return drawn


class Unit:
    """The arrays and the keywords of one call, and the reference's results."""

    def __init__(self, arrays, keywords):
        self.arrays, self.keywords, self.given = arrays, keywords, {**arrays, **keywords}
        self.dtype = arrays["x"].dtype
        self.steps, self.batch, _ = arrays["x"].shape
        self.n = arrays["w"].shape[-1]
        self.states = ref.gru(**self.given)

    def judged(self):
        """Whether rounding moves no argument of phi over a kink: noise of so many eps changes the states by little."""
        eps = np.finfo(self.dtype).eps
        rng = np.random.default_rng(0)
        near = lambda a: ref.wide(a) * (1 + 16 * eps * rng.standard_normal(a.shape))
        ct = np.ones_like(self.states)
        names = [name for name in self.arrays if self.arrays[name].size]
        first = ref.gru_vjp(**self.given, ct=ct)
        other = ref.gru_vjp(**{**self.given, **{name: near(self.arrays[name]) for name in names}}, ct=ct)
        for name in names:
            gap, size = np.linalg.norm(first[name] - other[name]), np.linalg.norm(first[name])
            if gap > 16 * AMPLIFIED * eps * max(size, tol.FLOOR):
                return False
        return True

    def loss(self, law):
        return law(self.dtype, self.n, self.steps) * AMPLIFIED

    def result(self):
        return Close(self.states, self.dtype, self.loss(tol.sequence))

    def gradients(self, ct):
        grads = ref.gru_vjp(**self.given, ct=ct)
        size = max(1.0, float(np.linalg.norm(ct)))
        loss = self.loss(tol.sequence_gradient)
        return {name: Close(grads[name].reshape(a.shape), a.dtype, loss, size) for name, a in self.arrays.items()}

    # ------------------------------------------------------------ possible faults

    def sites(self):
        n, batch, steps = self.n, self.batch, self.steps
        starts = ((batch, n), (1, n), (n,), (steps, batch, n), (steps, 1, n))
        d = self.arrays["x"].shape[2]
        stack = lambda own: lambda s: s[1:] == own  # one more axis is that of the members of an ensemble
        known = {
            "x": Numbers(
                3,
                lambda s: len(s) == 4 or (len(s) == 3 and min(s[:2]) > 0 and s[2] == d),
                {-1: "u"},
                real=True,
                precision=False,
            ),
            "w": Numbers(3, lambda s: s[-3:] == (3, n, n), {-1: "w|u", -2: "w|u"}, real=True),
            "h0": Numbers(1, lambda s: s in ((batch, n), (n,)) or s[1:] == (batch, n), real=True, required=False),
            "start_state": Numbers(1, lambda s: s in starts, real=True, required=False),
        }
        made = {
            name: Numbers(a.ndim, stack(a.shape), real=True, required=name == "u") for name, a in self.arrays.items()
        }
        return {name: known.get(name, site) for name, site in made.items()}

    def unwelcome(self):
        absent = {}
        if "activation_bias" not in self.arrays:
            absent["activation_bias"] = np.zeros(self.n, self.dtype)
        if self.keywords.get("reset") != "after":
            absent["hidden_bias"] = np.zeros(self.n, self.dtype)
        return absent
