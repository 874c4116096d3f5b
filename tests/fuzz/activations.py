"""Activations and their gradients on rows of any magnitude, checked entry by entry."""

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Elementwise, Numbers
from fuzz.recurrences import units
from registry import is_complex, real_of


def activations(choices, face, sizes=draw.SMALL):
    """activate, or activate_vjp, with zeros and ties among the numbers."""
    types = draw.Types(choices, face)
    n, lead = 0 if choices.once_in(32) else sizes.size(choices), sizes.leading(choices)
    z = numbers(choices, types, (*lead, n))
    complex_ = is_complex(z.dtype)
    paired = ("oplu", "oplu_halves", "modrelu_realrep") if n % 2 else ("modrelu_realrep",) if complex_ else ()
    name = choices.of([name for name in ref.NAMES if name not in paired])
    arguments, sites = {"z": z, "name": name}, {"z": Numbers(1, lambda s: len(s) > 0, precision=False)}
    bias = None
    if units(name, n) is not None:
        z, bias = biased(choices, types, z, name)
        arguments |= {"z": z, "bias": bias}
        blamed = "bias" if name == "modrelu" else "bias|z"
        sites = {
            "z": Numbers(1, lambda s: len(s) > 0 and s[-1] == n, {-1: blamed}, precision=False),
            "bias": draw.exactly(bias.shape, real=True, required=False),
        }
    keywords = {"slope": choices.of((0.1, 0.0, 0.4, 0))} if choices.once_in(2) else {}
    result = z.dtype if bias is None else np.result_type(z, bias)
    call = Call(
        "activate",
        {**arguments, **keywords},
        sites,
        expected=lambda: {"value": value(z, name, bias, keywords, result)},
        options=("name", "slope"),
        unwelcome={} if bias is not None else {"bias": np.zeros(n, real_of(z.dtype))},
        wanted=("z", "bias"),
        complex=complex_,
        sizes={"n": n},
    )
    if choices.once_in(2):
        ct = draw.cotangent(choices, types, face, result, z.shape)
        draw.pulled(call, ct, lambda: gradients(z, name, bias, keywords, ct))
    return draw.finished(choices, face, call)


def numbers(choices, types, shape):
    """Rows of many magnitudes; sometimes entries are zero, of either sign, or equal adjacent ones."""
    z = draw.scaled(types.numbers(*shape), draw.powers(choices, (*shape[:-1], 1), -40, 20))
    if choices.once_in(4):
        z = np.where(choices.rng.random(shape) < 0.3, choices.rng.choice([0.0, -0.0], shape), z).astype(z.dtype)
    if choices.once_in(4):
        z = np.where(choices.rng.random(shape) < 0.3, np.roll(z, 1, -1), z)
    return z


def biased(choices, types, z, name):
    """z and a bias of modReLU, with |z| + b not so close to zero that rounding determines its sign."""
    n = z.shape[-1]
    bias = draw.scaled(types.numbers(units(name, n), real=True), draw.powers(choices, (), -20, 4))
    if name == "modrelu_realrep" and n:
        pairs = ref.as_complex(z)
        return ref.as_real(moved(pairs, bias)).astype(z.dtype), bias
    return moved(z, bias).astype(z.dtype), bias


def moved(z, bias):
    """Twice the z whose modulus is -b to within rounding."""
    size, near = np.abs(ref.wide(z)), tol.KINK * np.finfo(z.dtype).eps
    return np.where(np.abs(size + bias) <= near * (size + np.abs(bias)), 2 * z, z)


def shape_of(z, name, bias):
    """|z| and |b| entry by entry, 0 if the activation has no bias."""
    if bias is None:
        return np.abs(z), 0.0
    if name == "modrelu_realrep":
        size = np.abs(ref.as_complex(ref.wide(z)))
        return np.concatenate([size, size], -1), np.abs(np.concatenate([bias, bias]))
    return np.abs(ref.wide(z)), np.abs(bias)


def value(z, name, bias, keywords, dtype):
    expected = ref.activate(z, name, bias, **keywords)
    size, own = shape_of(z, name, bias)
    return Elementwise(expected, dtype, tol.sequence(dtype, 1, 0), np.abs(expected) if bias is None else size + own)


def gradients(z, name, bias, keywords, ct):
    z_bar, bias_bar = ref.activate_vjp(z, name, ct, bias, **keywords)
    if not is_complex(z.dtype):
        z_bar = z_bar.real
    dtype = z.dtype if bias is None else draw.coarsest(z.dtype, bias.dtype)
    dtype = draw.coarsest(dtype, ct.dtype)
    size, own = shape_of(z, name, bias)
    largest = np.abs(ref.wide(ct))
    if name == "modrelu_realrep":
        both = np.abs(ref.as_complex(ref.wide(ct)))
        largest = np.concatenate([both, both], -1)
    largest = np.maximum(largest, np.abs(z_bar))  # OPLU's gradient may be the cotangent of the other entry
    bound = largest * (1 + own / np.where(size > 0, size, 1))
    found = {"z": Elementwise(z_bar, z.dtype, tol.sequence_gradient(dtype, 1, 0), bound)}
    if bias is not None:
        total = largest[..., : len(bias)].sum(axis=tuple(range(z.ndim - 1)))
        found["bias"] = Elementwise(bias_bar, bias.dtype, tol.sequence_gradient(dtype, 1, 0), total)
    return found
