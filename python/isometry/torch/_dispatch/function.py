"""Arrays for the kernels and their results, the place of computation, and gradients of formulas."""

import math
from _thread import _count as started  # Python's threads besides the main one; threading.active_count() takes 0.3 us
from collections.abc import Callable, Sequence
from operator import and_
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist
from torch.utils.dlpack import from_dlpack

from ... import _core, _threads
from ..._backend import Place, current

# The array type of the kernels.
Array: TypeAlias = np.ndarray | Tensor

# Whether kernels read tensors directly, through DLPack's C exchange (torch from 2.10 on); else through NumPy views.
_DIRECT = _core.exchange_with(torch.Tensor)

# In bytes. Up to _SMALL NumPy allocates faster; from _LARGE on NumPy requests huge pages, unlike torch; in between
# torch's alignment to cache lines matters more.
_SMALL, _LARGE = 1 << 17, 1 << 22
_LINE = 64

_TYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
REAL_OF = {dtype: dtype.to_real() for dtype in _TYPES}
COMPLEX_OF = {dtype: dtype.to_complex() for dtype in _TYPES}
HALF = (torch.float16, torch.bfloat16)


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a dtype: "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


_NUMPY_OF = {dtype: getattr(np, dtype_name(dtype)) for dtype in _TYPES}


def widened(t: Tensor) -> Tensor:
    """The tensor in float32 if it is of half precision, for which there are no kernels."""
    return t.float() if t.dtype in HALF else t


def threads(_backend: object = None) -> int:
    """The thread budget: the user's setting, else torch's; the place of a call that has no kernels on the GPU."""
    return _threads.chosen() or torch.get_num_threads()


def place(backend: str | None) -> Place:
    """Where kernels compute, by the keyword of a call, else by `use_backend`: the GPU, or a number of threads."""
    return "gpu" if (backend or current()) == "gpu" else threads()


def readable(t: Tensor) -> Array:
    """The values in C order, as a kernel takes them; copied only if necessary."""
    if not _DIRECT:
        return array(t)
    if not t.is_contiguous():
        t = t.contiguous()
    return array(t) if t.is_conj() or t.is_neg() else t


def array(t: Tensor, *shape: int) -> Array:
    """The values in C order, as an array of the given shape; copied only if necessary.

    A shape starts with the batch axis; the kernels do not need it if it is 1 (or -1, a count of rows).
    """
    if not _DIRECT:
        # After numpy() a storage can no longer be resized, and fully_shard resizes those of parameters: numpy() gets an
        # alias with a storage of its own.
        if t.is_cpu and dist.is_available() and dist.is_initialized():
            t = from_dlpack(t.detach().resolve_conj().resolve_neg())
        # force=True detaches and resolves conjugated and negated views in one call.
        a = np.ascontiguousarray(t.numpy(force=True))
        return a.reshape(shape) if shape else a
    if not t.is_contiguous() or t.is_conj() or t.is_neg() or not t.is_cpu:
        t = t.detach().resolve_conj().resolve_neg().cpu().contiguous()
    return t if _fits(t.shape, shape) else t.detach().reshape(shape)


def _fits(own: Sequence[int], shape: tuple[int, ...]) -> bool:
    """Whether a kernel that expects the second shape accepts an array of the first."""
    missing = len(shape) - len(own)
    if missing == 1:
        return shape[0] in (1, -1)
    return not shape or (missing == 0 and shape[0] in (own[0], -1))


def empty(shape: Sequence[int], dtype: torch.dtype, *folded: int) -> tuple[Tensor, Array]:
    """An uninitialised contiguous tensor, and its memory as an array of the folded shape (by default the tensor's)."""
    size = math.prod(shape) * dtype.itemsize
    if not size or _SMALL < size < _LARGE:  # NumPy's strides of no elements are zeros, torch's are not
        t = torch.empty(shape, dtype=dtype, device="cpu")
        a = t.numpy()
    else:
        a = np.empty(shape, _NUMPY_OF[dtype]) if size <= _SMALL else _aligned(shape, dtype, size)
        t = torch.from_numpy(a)
    return t, a if not folded or _fits(a.shape, folded) else a.reshape(folded)


def _aligned(shape: Sequence[int], dtype: torch.dtype, size: int) -> np.ndarray:
    """An uninitialised array that starts on a cache line."""
    memory = np.empty(size + _LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % _LINE
    return memory[start : start + size].view(_NUMPY_OF[dtype]).reshape(shape)


def arrays(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """What a kernel takes for each, None for None."""
    return tuple([None if t is None else readable(t) for t in tensors])


def empty_gradients(
    wanted: Sequence[bool], like: Sequence[Tensor | None]
) -> tuple[tuple[Tensor | None, ...], tuple[Array | None, ...]]:
    """Uninitialised gradients of the tensors that want one: as tensors, and as a kernel takes them."""
    grads: list[Tensor | None] = []
    bars: list[Array | None] = []
    for w, t in zip(wanted, like, strict=True):
        grad, bar = empty(t.shape, t.dtype) if w and t is not None else (None, None)
        grads.append(grad)
        bars.append(bar)
    return tuple(grads), tuple(bars)


def trained_only(asked: Sequence[bool], trained: tuple[bool, ...]) -> tuple[bool, ...]:
    """The gradients to compute; a list of arguments is trained like its first."""
    if len(asked) > len(trained):
        trained += trained[-1:] * (len(asked) - len(trained))
    return tuple(map(and_, asked, trained))


def distinct(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    """The tensors, with views for repeated ones: the compiler refuses a Function that is given a tensor twice."""
    made: list[Tensor | None] = []
    for i, t in enumerate(tensors):
        again = t is not None and any(t is other for other in tensors[:i])
        made.append(t.view_as(t) if again and t is not None else t)
    return tuple(made)


def aliased(tensors: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    """What `Function.apply` may be given while other threads run: the tensors, with views for trained leaves.

    For a leaf, `apply` waits for the mutex of its gradient while it holds the interpreter's lock. An operation of torch
    (2.15) in another thread holds that mutex and then waits for the lock, for ever. The view is an operation of torch,
    which waits for the mutex without the lock; it costs a microsecond, and one backward.
    """
    if not started():
        return tensors
    return [t if t is None or not (t.requires_grad and t.is_leaf) else t.view_as(t) for t in tensors]


def formula_vjp(
    formula: Callable[..., tuple[Tensor, ...]],
    inputs: Sequence[Tensor | None],
    wanted: Sequence[bool],
    cts: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """Gradients of `formula(*inputs)` along the cotangents for the wanted inputs, as differentiable functions of all of
    them.
    """
    create = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views replace the inputs, because one input may depend on another: these gradients are partial derivatives.
        views = [t.view_as(t) if w and t is not None else t for t, w in zip(inputs, wanted, strict=True)]
        pairs = zip(formula(*views), cts, strict=True)
        known = [(t, ct) for t, ct in pairs if ct is not None and t.requires_grad]
        places = [i for i, w in enumerate(wanted) if w and views[i] is not None]
        grads: list[Tensor | None] = [None] * len(inputs)
        if known:
            out, ways = zip(*known, strict=True)
            leaves: Any = [views[i] for i in places]
            found = torch.autograd.grad(out, leaves, ways, create_graph=create, allow_unused=True)
            for i, grad in zip(places, found, strict=True):
                grads[i] = grad
    return grads
