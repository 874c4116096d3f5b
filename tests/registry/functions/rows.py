"""Functions of rows and sequences: activations, Hadamard transforms, the delta rule."""

import numpy as np

from registry.functions.entry import Function
from registry.functions.linalg import NUMPY

Z = np.ones((2, 6))
SHARED = {"slope": 0.1}
PAIRS = tuple(({"z": Z[:, :5], "name": name}, ValueError, "oplu|odd|even") for name in ("oplu", "oplu_halves"))


def modrelu(draw):
    return {"z": draw(2, 4), "bias": draw.real(4)}


def tokens(draw):
    """T = 3 tokens of 2 rows, one key head, two value heads, K = V = 2."""
    rows = {"q": draw(1, 3, 1, 2), "k": draw(1, 6, 1, 2), "v": draw(1, 6, 2, 2), "beta": np.abs(draw(1, 6, 2))}
    return {**rows, "g": -np.abs(draw(1, 3, 2)), "initial_state": draw(1, 2, 2, 2)}


def sequence(gate, cts=False):
    """One head of many tokens."""

    def drawn(draw):
        given = {"q": draw(1, 700, 1, 64), "k": draw(1, 1400, 1, 64), "v": draw(1, 1400, 1, 64)}
        given |= {"beta": np.abs(draw(1, 1400, 1)) / 2, "g": gate and -np.abs(draw(1, 700, *gate))}
        return given | ({"o_bar": draw(1, 700, 1, 64), "state_bar": draw(1, 1, 64, 64)} if cts else {})

    return drawn


GATES = ((1,), (1, 64), None)
DELTA = {"householders": 2, "scale": 1.0, "cu_seqlens": None, "normalise": True, "backend": "cpu"}
ROWS = {
    "activate": Function(
        lambda draw: {"z": draw(2, 4)},
        {"name": "tanh", "bias": None, **SHARED},
        (
            ({"name": "softplus"}, ValueError, "softplus|name"),
            *PAIRS,
            ({"name": "modrelu"}, ValueError, "bias"),
            ({"z": Z, "name": "modrelu", "bias": np.zeros(5)}, ValueError, "bias"),
            ({"z": Z, "name": "modrelu_realrep", "bias": np.zeros(6)}, ValueError, "bias"),
            ({"z": Z, "bias": np.zeros(6)}, ValueError, "bias"),
            ({"name": "leaky_relu", "slope": 1.0}, ValueError, "slope"),
            ({"name": "leaky_relu", "slope": -0.1}, ValueError, "slope"),
        ),
    ),
    "activate, modReLU": Function(modrelu, {"name": "modrelu", **SHARED}),
    "activate_vjp": Function(
        lambda draw: {"z": draw(2, 4), "ct": draw(2, 4)},
        {"name": "tanh", "bias": None, **SHARED},
        (({"ct": np.ones((1, 4))}, ValueError, "ct"),),
        faces=NUMPY,
    ),
    "activate_vjp, modReLU": Function(
        lambda draw: {**modrelu(draw), "ct": draw(2, 4)}, {"name": "modrelu", **SHARED}, faces=NUMPY
    ),
    "hadamard_transform": Function(
        lambda draw: {"x": draw(2, 4)},
        {"scale": 0.5, "out": None},
        (
            ({"x": np.array(1.0)}, ValueError, r"^x must have shape \(\.\.\., n\) with n >= 1, not \(\)$"),
            ({"x": np.zeros((2, 0))}, ValueError, "^x must"),
            ({"scale": "1"}, TypeError, "^scale must be a number, not str"),
        ),
        smooth=True,
    ),
    "delta_rule": Function(
        tokens,
        DELTA,
        (
            ({"k": np.ones((1, 6, 1, 2)) + 1j}, TypeError, "k must be real"),
            ({"householders": 0}, ValueError, "householders must be at least 1"),
            ({"householders": 1.5}, TypeError, "householders must be an integer"),
            ({"cu_seqlens": [[0, 3]]}, ValueError, "cu_seqlens must have shape"),
            ({"cu_seqlens": [0.0, 3.0]}, TypeError, "cu_seqlens must be integers"),
            ({"normalise": 1}, TypeError, "normalise must be a bool"),
            ({"v": np.ones((1, 6, 2, 0))}, ValueError, "v must not have a size of 0"),
            ({"g": np.ones((1, 3, 2, 1))}, ValueError, "g must have shape"),
            ({"q": np.ones((3, 1, 2))}, ValueError, "q must have shape"),
            ({"backend": "tpu"}, ValueError, "backend"),
        ),
        real=True,
        smooth=True,
        large=tuple(map(sequence, GATES)),
    ),
    "delta_rule, of a batch": Function(
        lambda draw: {"q": draw(2, 5, 1, 2), "k": draw(2, 5, 1, 2), "v": draw(2, 5, 1, 2), "beta": draw(2, 5, 1)},
        {"cu_seqlens": None},
        (({"cu_seqlens": [0, 5]}, ValueError, "cu_seqlens needs a batch of 1"),),
        real=True,
    ),
    "delta_rule_vjp": Function(
        lambda draw: {**tokens(draw), "o_bar": draw(1, 3, 2, 2), "state_bar": draw(1, 2, 2, 2)},
        DELTA,
        (({"o_bar": np.ones((1, 2, 2, 2))}, ValueError, "o_bar"), ({"scale": np.nan}, ValueError, "scale must")),
        real=True,
        faces=NUMPY,
        large=tuple(sequence(gate, cts=True) for gate in GATES),
    ),
}
