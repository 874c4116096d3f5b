"""The keywords and checks of ``torch.nn.RNN``, in its order and wording: programs and their tests may rely on both."""

import numbers
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypedDict

import torch
from torch import Tensor

from ..._rules import check
from .._dispatch.function import COMPLEX_OF, HALF, REAL_OF, dtype_name
from .._dispatch.mode import autocast
from ..operators._operator import dense

#: What a recurrence gives: all states, or the last of each sequence.
Output = Literal["states", "last"]


class StateKeywords(TypedDict, total=False):
    """Trained initial states, what is kept of the states and returned, and where."""

    trainable_h0: bool
    checkpoint: Literal["none", "sqrt", "reversible"]
    last_only: bool
    device: torch.device | str | None
    dtype: torch.dtype | None


class LayerKeywords(StateKeywords, total=False):
    """Those of ``torch.nn.RNN`` too."""

    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool


class HeadKeywords(StateKeywords, total=False):
    """Those of a layer whose recurrent matrices may be block-diagonal."""

    heads: int


class DivisibleKeywords(LayerKeywords, HeadKeywords, total=False):
    """Both."""


class Sweep(NamedTuple):
    """One recurrence of a layer over a sequence, in one direction."""

    suffix: str
    x: Tensor  # (T, B, features)
    h0: Tensor | None
    lengths: Tensor | None = None
    reverse: bool = False
    output: Output = "states"
    checkpoint: Literal["none", "sqrt", "reversible"] = "none"
    starts: Tensor | None = None  # marks (T, B) of steps at which other sequences begin
    start_state: Tensor | None = None  # the state before them, (B, n), (n,), or (T, B, n)


def check_constructor(
    input_size: Any, hidden_size: Any, num_layers: Any, bias: Any, batch_first: Any, dropout: Any, *, constructors: int
) -> tuple[int, int, int]:
    """The sizes, after a check of them and of the shared keywords; a warning names the line behind this many
    constructors."""
    try:
        float(dropout)
    except OverflowError:
        pass  # checked to be at most 1 below
    except (TypeError, ValueError) as error:
        raise type(error)(f"dropout: {error}") from None
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=2 + constructors,
        )
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    return _size("input_size", input_size), _size("hidden_size", hidden_size), _size("num_layers", num_layers)


def _size(name: str, value: Any) -> int:
    """A number of units or layers, in torch's words."""
    try:
        size = check.whole(name, value)
    except TypeError:
        raise TypeError(f"{name} should be of type int, got: {type(value).__name__}") from None
    if size <= 0:
        raise ValueError(f"{name} must be greater than zero")
    return check.count(name, size, 1)


def check_heads(name: str, heads: Any, hidden_size: int, divisible: bool) -> int:
    """The number of blocks of the recurrent matrices of a layer of the given class name."""
    count = check.count("heads", heads, 1)
    if not divisible and count != 1:
        raise TypeError(f"heads must be 1 for {name}, whose matrices are whole, not {heads!r}")
    if hidden_size % count:
        raise ValueError(f"heads must divide hidden_size = {hidden_size}, not {count}")
    return count


def check_dtype(name: str, dtype: torch.dtype, is_complex: bool) -> None:
    """The dtype of the weights of a layer of the given class name."""
    if not isinstance(dtype, torch.dtype):
        check.kind("dtype", "a torch.dtype", dtype)
    if dtype.is_complex:
        raise TypeError(f"{name} stores complex numbers as pairs: its weights must have a real dtype, not {dtype}")
    if dtype in REAL_OF or (dtype in HALF and not is_complex):
        return
    what = "float32 or float64" if is_complex else "float16, bfloat16, float32 or float64"
    why = ": the states are complex, and half precision has no complex numbers" if dtype in HALF else ""
    raise TypeError(f"{name} must have weights of dtype {what}, not {dtype_name(dtype)}{why}")


def accepted(weight: torch.dtype, is_complex: bool) -> tuple[torch.dtype, ...]:
    """The dtypes of inputs and states, without autocast; none for weights that a layer does not compute in."""
    if not is_complex:
        return (weight,) if weight in HALF or REAL_OF.get(weight) is weight else ()
    return (weight, COMPLEX_OF[weight]) if REAL_OF.get(weight) is weight else ()


def check_weights(name: str, weight: Tensor, is_complex: bool) -> None:
    """The precision of a layer of the given class name; autocast widens a lower one."""
    check_dtype(name, weight.dtype, is_complex and not (weight.dtype in HALF and autocast(weight.device)))


def _conversion(given: torch.dtype, weight: torch.dtype, is_complex: bool) -> str:
    """The advice for an input of the wrong dtype; only real weights can be converted."""
    if given.is_complex and not is_complex:
        return "Convert input to real features: torch.cat([input.real, input.imag], -1)"
    right = COMPLEX_OF[weight] if given.is_complex else weight
    model = f", or convert model: model.to({REAL_OF[given]})" if given in REAL_OF else ""
    return f"Convert input: input.to({right}){model}"


def check_input(name: str, x: Tensor, weight: Tensor, dimensions: int, features: int, is_complex: bool) -> None:
    """The input of a layer of the given class name; a complex layer accepts real and complex input."""
    widened = autocast(x.device)
    check_weights(name, weight, is_complex)
    if not widened and x.dtype not in accepted(weight.dtype, is_complex):
        raise ValueError(
            f"{name} input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). "
            + _conversion(x.dtype, weight.dtype, is_complex)
        )
    if x.dim() != dimensions:
        raise RuntimeError(f"input must have {dimensions} dimensions, got {x.dim()}")
    if x.size(-1) != features:
        raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {features}, got {x.size(-1)}")
    _same_device(x, "parameter", weight)


def check_step(layer: Any, x: Any) -> None:
    """The input of a single step of a layer."""
    if layer.bidirectional:
        raise ValueError("step needs a layer of one direction: the other one starts at the end of a sequence")
    if dense("input", x).dim() not in (1, 2):
        name = type(layer).__name__
        raise ValueError(f"{name}: Expected input of a step to be 1D or 2D, got {x.dim()}D tensor instead")


def unbatched(starts: Any, axis: int) -> Any:
    """Marks (T,) of an input without a batch, with the axis of its batch."""
    return dense("starts", starts).unsqueeze(axis) if isinstance(starts, Tensor) and starts.dim() == 1 else starts


def check_starts(starts: Any, shape: Sequence[int]) -> Tensor:
    """The marks of an input whose first axes are these."""
    if dense("starts", starts, "a torch.Tensor of bools").dtype is not torch.bool:
        raise TypeError(f"starts must be bool, not {dtype_name(starts.dtype)}")
    if tuple(starts.shape) != tuple(shape):
        raise ValueError(
            f"starts must have the shape of the input without its features, {tuple(shape)}, not {tuple(starts.shape)}"
        )
    return starts


def check_hidden(x: Tensor, hx: Tensor | None, weight: Tensor, expected: tuple[int, ...], is_complex: bool) -> None:
    """The initial states for an input; complex ones would make a real layer's output complex."""
    if hx is None:
        return
    if tuple(hx.shape) != expected:
        raise RuntimeError(f"Expected hidden size {expected}, got {list(hx.size())}")
    _check_state("hx", x, hx, weight, is_complex)


def check_start_state(
    state: Any, parts: int, x: Tensor, weight: Tensor, steps: int, expected: tuple[int, ...], is_complex: bool
) -> Tensor:
    """The states before marks, of the shape of one part of h_0 or with the steps in front, the parts side by side."""
    given = state if parts > 1 and isinstance(state, (tuple, list)) else (state,)
    if len(given) != parts or not all(isinstance(t, Tensor) for t in given):
        kind = "a torch.Tensor" if parts == 1 else f"{parts} torch.Tensors, one for each part of the state"
        check.kind("start_state", kind, state)
    whole = steps, *expected
    for t in given:
        if tuple(dense("start_state", t).shape) != (whole if t.dim() == len(whole) else expected):
            raise ValueError(f"start_state must have shape {expected} or {whole}, not {tuple(t.shape)}")
        _check_state("start_state", x, t, weight, is_complex)
    return given[0] if parts == 1 else torch.cat(torch.broadcast_tensors(*given), -1)


def _check_state(name: str, x: Tensor, state: Tensor, weight: Tensor, is_complex: bool) -> None:
    """The type of states beside an input, and their device."""
    if state.is_complex() and not is_complex:
        raise TypeError(f"{name} must be real, as the states of this layer are, not {state.dtype}")
    if REAL_OF.get(state.dtype, state.dtype) is not REAL_OF.get(weight.dtype, weight.dtype) and not autocast(x.device):
        raise TypeError(f"{name} must have the precision of the weights, {weight.dtype}, not {state.dtype}")
    _same_device(x, "hidden", state)


def _same_device(x: Tensor, what: str, other: Tensor) -> None:
    if other.device != x.device:
        raise RuntimeError(
            f"Input and {what} tensors are not at the same device, "
            f"found input tensor at {x.device} and {what} tensor at {other.device}"
        )
