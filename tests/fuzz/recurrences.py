"""The plain recurrent layer over every object, with all its options."""

from dataclasses import dataclass, replace

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Close, Numbers
from fuzz.operators import operator, unwelcome
from registry import is_complex, real_of

OPTIONS = ("transition", "activation", "slope", "activation_on", "lengths", "reverse", "starts", "backend")
TRIES = 6  # draws to avoid values too close to a kink
AMPLIFIED = 50.0  # largest error amplification by modReLU for which a tolerance is meaningful


def recurrences(choices, face, sizes=draw.SMALL):
    """States, or gradients, of a layer that the reference can judge."""
    types = draw.Types(choices, face)
    steps, batch, d = choices.between(*sizes.steps), choices.between(*sizes.batch), choices.of((1, 2, 3, 2, 1, 3, 2, 0))
    n, m = sizes.size(choices), choices.between(*sizes.m)
    drawn, given, sites = operator(choices, face, types, n, m, square=True, calm=True)
    n = drawn.shape[0]
    keywords = options(choices, n, steps, batch, is_complex(types.base) or is_complex(drawn.dtype))
    wanted = [choices.once_in(2), choices.once_in(2), choices.between(0, 3), choices.between(0, 3)]
    wanted.append(draw.powers(choices, ()))
    for _ in range(TRIES):
        layer = Layer(drawn, arrays(types, n, steps, batch, d, keywords, *wanted), keywords, wanted[-1])
        if layer.judged():
            break
    else:
        # Without an activation there is no kink.
        keywords = {**keywords, "activation": "identity"}
        layer = Layer(drawn, arrays(types, n, steps, batch, d, keywords, *wanted), keywords, wanted[-1])
    call = Call(
        "recurrence",
        {**given, **layer.arrays, **{k: v for k, v in keywords.items() if k != "activation" or v != "tanh"}},
        {**sites, **layer.sites()},
        expected=lambda: {"value": layer.result()},
        cls=drawn.entry.cls,
        held=drawn.held,
        options=OPTIONS,
        unwelcome=unwelcome(choices, drawn) | layer.unwelcome(),
        wanted=(*drawn.graded, *layer.arrays),
        complex=is_complex(layer.dtype),
        sizes={"n": n, "T": steps, "B": batch},
    )
    if choices.once_in(2):
        differentiated(choices, types, face, call, layer)
    return draw.finished(choices, face, call)


def differentiated(choices, types, face, call, layer):
    """Turns the call into that of the gradient."""
    shape = layer.states.shape
    ct = draw.cotangent(choices, types, face, layer.dtype, shape)
    draw.pulled(call, ct, lambda: layer.gradients(ct))
    call.arguments["states"] = layer.states.astype(layer.dtype)
    call.sites["states"] = draw.exactly(shape, real_as_result=True)


def options(choices, n, steps, batch, complex_):
    """The keywords that are not arrays of real numbers."""
    paired = ("oplu", "oplu_halves", "modrelu_realrep") if n % 2 else ("modrelu_realrep",) if complex_ else ()
    keywords = {"activation": choices.of(["tanh", *(name for name in ref.NAMES if name not in paired)])}
    if choices.once_in(2):
        keywords["slope"] = choices.of((0.1, 0.0, 0.4, 0))
    if choices.once_in(3):
        keywords["activation_on"] = choices.of(("input", "all"))
    if choices.once_in(2):
        lengths = [choices.between(1, steps) for _ in range(batch)]
        keywords["lengths"] = np.array(lengths, choices.of(draw.INTEGERS)) if choices.once_in(2) else lengths
    if choices.once_in(2):
        keywords["reverse"] = choices.of((True, False))
    return keywords | marks(choices, steps, batch)


def marks(choices, steps, batch):
    """Marks of the steps that begin another sequence, often none."""
    if not choices.once_in(2):
        return {}
    return {"starts": choices.rng.random((steps, batch)) < choices.of((0.5, 0.2, 1.0, 0.0))}


def units(activation, n):
    """The length of the activation's own bias; None without one."""
    return {"modrelu": n, "modrelu_realrep": n // 2}.get(activation)


def arrays(types, n, steps, batch, d, keywords, with_bias, with_h0, kind_of_h0, kind_of_start, exponent):
    """Inputs and weights whose magnitudes compensate each other, biases and initial states of order 1."""
    drawn = {
        "x": draw.scaled(types.numbers(steps, batch, d), exponent),
        "input_weight": draw.scaled(types.numbers(n, d), -exponent),
    }
    if with_h0:
        drawn["h0"] = types.numbers(*((batch, n), (n,), (1, n), (batch, n))[kind_of_h0])
    if "starts" in keywords and kind_of_start:
        drawn["start_state"] = types.numbers(*((n,), (batch, n), (1, n))[kind_of_start - 1])
    if with_bias:
        drawn["bias"] = types.numbers(n)
    own = units(keywords["activation"], n)
    if own is not None:
        drawn["activation_bias"] = draw.scaled(types.numbers(own, real=True), -2)
    return drawn


@dataclass(frozen=True)
class States(Close):
    """The states of a layer; exactly zero past the end of a sequence."""

    behind: np.ndarray | None = None

    def check(self, found, what):
        super().check(found, what)
        assert not found[self.behind].any(), f"{what} is not zero behind the end of a sequence"


class Layer:
    """A transition, the arrays and the keywords of one call, and the reference's results."""

    def __init__(self, drawn, arrays, keywords, exponent):
        self.drawn, self.arrays, self.keywords, self.exponent = drawn, arrays, keywords, exponent
        others = {k: a for k, a in arrays.items() if k not in ("x", "input_weight")}
        for name in ("h0", "start_state"):
            if len(others.get(name, ())) == 1:
                others[name] = others[name].reshape(-1)  # the reference knows one state for all sequences as a vector
        self.given = {"x": arrays["x"], "v": arrays["input_weight"], **others, **keywords}
        self.states = ref.recurrence(drawn.w, **self.given)
        self.steps, self.batch, self.n = self.states.shape
        lengths = keywords.get("lengths")
        self.lengths = np.full(self.batch, self.steps) if lengths is None else np.asarray(lengths, int)

    @property
    def dtype(self):
        return np.result_type(self.drawn.dtype, *(a.dtype for a in self.arrays.values()))

    # ------------------------------------------------------------ what the reference can judge

    def sums(self):
        """The arguments of the activation: all steps of a piece of a sequence, for every piece."""
        x, v, states = ref.wide(self.arrays["x"]), ref.wide(self.arrays["input_weight"]), self.states
        b, reverse = ref.wide(self.arrays.get("bias", 0.0)), self.keywords.get("reverse", False)
        for s, length in enumerate(self.lengths):
            for order, start in ref.pieces(s, length, reverse, self.keywords.get("starts")):
                first = ref.initial(self.given.get(start), s, self.n)[None]
                before = np.concatenate([first, states[list(order[:-1]), s]])
                drive = x[list(order), s] @ v.T + b
                yield drive + before @ self.drawn.w.T if self.keywords.get("activation_on", "all") == "all" else drive

    def judged(self):
        """Whether every sum is farther from the kinks of the activation than its rounding error."""
        near = tol.KINK * np.finfo(self.dtype).eps * self.steps
        return all(distance > near for z in self.sums() for distance in self.distances(z)) and (
            self.amplification < AMPLIFIED
        )

    def distances(self, z):
        """To the kinks, in units of the largest sum; exact zeros are zeros in every precision."""
        name, scale = self.keywords["activation"], 1 + np.abs(z).max(initial=0)
        parts = [z.real, z.imag] if np.iscomplexobj(z) else [z]
        if name in ("relu", "leaky_relu"):
            gaps = parts
        elif name in ("oplu", "oplu_halves"):
            i, j = ref.pairs(self.n, name)
            gaps = [a[:, i] - a[:, j] for a in parts]
        elif units(name, self.n) is not None:
            size = np.abs(z if name == "modrelu" else ref.as_complex(z))
            gaps = [np.where(size > 0, size + self.arrays["activation_bias"], 0), size]
        else:
            gaps = []
        for gap in gaps:
            yield np.abs(gap[gap != 0]).min(initial=scale) / scale

    @property
    def amplification(self):
        """Error amplification of the steps: ||W|| and, across the direction of a complex z, 1 + b / |z|."""
        name, most = self.keywords["activation"], max(1.0, np.linalg.norm(self.drawn.w, 2)) ** self.steps
        turning = (name == "modrelu" and self.dtype.kind == "c") or name == "modrelu_realrep"
        if not turning:
            return most
        bias, grown = np.abs(self.arrays["activation_bias"]), [1.0]
        for z in self.sums():
            size = np.abs(z if name == "modrelu" else ref.as_complex(z))
            grown.append(np.prod(1 + (bias / np.where(size > 0, size, 1)).max(axis=-1, initial=0)))
        return most * max(grown)

    # ------------------------------------------------------------ results

    def loss(self, dtype, law):
        return law(dtype, self.drawn.factors, self.steps) * self.drawn.condition * self.amplification

    def result(self):
        behind = np.arange(self.steps)[:, None] >= self.lengths
        return States(self.states, self.dtype, self.loss(self.dtype, tol.sequence), tol.FLOOR, behind=behind)

    def gradients(self, ct):
        grads, dtype = ref.recurrence_vjp(self.drawn.w, ct=ct, **self.given), self.dtype
        size = float(np.linalg.norm(ct)) + 1e-3 / tol.FLOOR
        # the cotangent of W is the sum of terms z_bar h^H, which may cancel
        own = self.drawn.pulled_back(grads["w"], dtype, size * max(1.0, float(np.linalg.norm(self.states))))
        steps = (1 + self.steps) * self.amplification
        found = {f"transition.{k}": replace(part, tolerance=part.tolerance * steps) for k, part in own.items()}
        for name, a in self.arrays.items():
            value = (grads[name] if is_complex(a.dtype) else grads[name].real).reshape(a.shape)
            unit = np.exp2(float({"x": self.exponent, "input_weight": -self.exponent}.get(name, 0)))
            loss = self.loss(draw.coarsest(dtype, a.dtype), tol.sequence_gradient)
            found[name] = Close(value, a.dtype, loss, tol.FLOOR * size, unit)
        return found

    # ------------------------------------------------------------ possible faults

    def sites(self):
        n, batch, steps = self.n, self.batch, self.steps
        d = self.arrays["x"].shape[2]
        starts = ((batch, n), (1, n), (n,))
        each = ((steps, batch, n), (steps, 1, n))
        known = {
            "x": Numbers(3, lambda s: len(s) == 3 and min(s[:2]) > 0 and s[2] == d, {-1: "input_weight"}),
            "h0": Numbers(1, lambda s: s in starts, required=False),
            "start_state": Numbers(1, lambda s: s in starts + each, required=False),
            "activation_bias": Numbers(1, real=True, required=False),
        }
        return {k: known.get(k, draw.exactly(a.shape, required=k == "input_weight")) for k, a in self.arrays.items()}

    def unwelcome(self):
        if "activation_bias" in self.arrays:
            return {}
        return {"activation_bias": np.zeros(self.n, real_of(self.dtype))}
