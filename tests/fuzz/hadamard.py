"""The Hadamard transform, a function of rows; in the torch face its gradient as well."""

import functools

import numpy as np

import reference as ref
import tolerance as tol
from fuzz import draw
from fuzz.call import Call, Close, Numbers
from reference.hadamard import entries

ORDERS = (4, 1, 2, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 64, 96, 128)
matrix = functools.cache(entries)


def hadamard(choices, face):
    n, types = choices.of(ORDERS), draw.Types(choices, face)
    x = types.numbers(*draw.SMALL.leading(choices), n)
    scale = choices.of((1.0, n**-0.5, 0.3, -2, 0))
    bound = tol.forward(x.dtype, n)
    exists = lambda s: len(s) > 0 and s[-1] > 0 and matrix(s[-1]) is not None
    call = Call(
        "hadamard_transform",
        {"x": x, **({} if scale == 1.0 and choices.once_in(2) else {"scale": scale})},
        {"x": Numbers(1, exists, precision=False, half=True)},
        expected=lambda: {"value": Close(scale * ref.wide(x) @ matrix(n).T, x.dtype, bound)},
        threads=choices.between(1, 2),
    )
    if face.name == "torch" and choices.once_in(2):
        ct = draw.numbers(choices.rng, *x.shape, dtype=x.dtype)
        call.wanted = ("x",)
        draw.pulled(call, ct, lambda: {"x": Close(scale * ref.wide(ct) @ matrix(n), np.dtype(x.dtype), bound)})
    return draw.finished(choices, face, call)
