"""Hypothesis strategies for arguments that are almost right: shapes, dtypes, memory layouts and values."""

import numpy as np
from hypothesis import strategies as st

from faces import LAYOUTS

REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
ODD = ("float16", "longdouble", "int32", "int64", "uint8", "bool", "object", "U1", "M8[s]")
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 5e-324, 1e30, 1e-30)

sizes = st.integers(0, 5)
seeds = st.integers(0, 2**32 - 1)
names = st.sampled_from(
    ("identity", "tanh", "relu", "leaky_relu", "oplu", "oplu_halves", "modrelu", "modrelu_realrep", "swish", "", None)
)
flags = st.booleans()
rarely = st.integers(0, 7).map(lambda k: k == 0)
dtypes = st.one_of(st.sampled_from(REAL), st.sampled_from(REAL), st.sampled_from(COMPLEX), st.sampled_from(ODD))


def values(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        z = rng.standard_normal(shape)
        return (z + 1j * rng.standard_normal(shape)).astype(dtype) if dtype.kind == "c" else z.astype(dtype)
    return rng.integers(0, 3, shape).astype(dtype)


@st.composite
def shapes(draw, wanted):
    """The wanted shape, sometimes with an axis too many, too few, or of another length."""
    shape = list(wanted)
    if draw(rarely):
        change = draw(st.sampled_from(("size", "more", "fewer")))
        if change == "size" and shape:
            shape[draw(st.integers(0, len(shape) - 1))] = draw(sizes)
        elif change == "more":
            shape.insert(0, draw(sizes))
        elif shape:
            del shape[0]
    return tuple(shape)


@st.composite
def arrays(draw, wanted, dtype=None, positive=False):
    """An array of about the wanted shape and dtype, of any layout, with special values now and then."""
    shape = draw(shapes(wanted))
    if dtype is None or draw(rarely):
        dtype = draw(dtypes)
    a = np.asarray(values(np.random.default_rng(draw(seeds)), shape, dtype))
    a = np.abs(a) if positive and a.dtype.kind == "f" else a
    if a.size and a.dtype.kind in "fc" and draw(rarely):
        with np.errstate(over="ignore"):
            a.reshape(-1)[draw(st.integers(0, a.size - 1))] = draw(st.sampled_from(SPECIAL))
    if a.ndim and a.dtype.kind in "fc" and a.dtype.itemsize <= 16 and draw(flags):
        a = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](a)
    if a.ndim and draw(rarely):
        a = np.broadcast_to(a[:1], a.shape) if len(a) else a
    return a.tolist() if a.dtype.kind == "f" and draw(rarely) else a


def leads():
    """The leading axes of a stack."""
    return st.lists(st.sampled_from((0, 1, 1, 2, 3)), max_size=2).map(tuple)


def maybe(strategy):
    return st.one_of(st.none(), strategy)
