"""Calls with an array on the GPU: their results stay there, and their NumPy arrays are copied there."""

from typing import Any

import numpy as np

from isometry._rules import check_gpu
from isometry.gpu._array import SINGLE, Array


def resident(*arrays: object) -> bool:
    """Whether one of the arrays is on the GPU."""
    return Array in map(type, arrays)


def beside(a: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Room for an array where another is."""
    return Array.room(shape, dtype) if type(a) is Array else np.empty(shape, dtype)


def fits(dtype: np.dtype[Any], **arrays: Any) -> None:
    """Refuse arrays on the GPU of another dtype than that of the call."""
    for argument, a in arrays.items():
        if type(a) is Array and a.dtype != dtype:
            if dtype not in SINGLE:
                check_gpu.single("the result", dtype.name)
            check_gpu.unconverted(argument, a.dtype.name, dtype.name)


def single(a: Any) -> Any:
    """Integers as float32, since float64 is refused on the GPU."""
    found = np.asarray(a) if isinstance(a, (int, float, list, tuple)) else a
    return found.astype(np.float32) if isinstance(found, np.ndarray) and found.dtype.kind in "biu" else a


def sent(grads: Any) -> Any:
    """Gradients on the GPU, copied there where the CPU has computed them."""
    if isinstance(grads, dict):
        return {name: sent(grad) for name, grad in grads.items()}
    if isinstance(grads, list):
        return [sent(grad) for grad in grads]
    return grads if grads is None or type(grads) is Array else Array(grads)
