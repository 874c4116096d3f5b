"""The seam: stateless functions on C-ordered, aligned arrays of one dtype T; R is its real type.

An array is NumPy's, or a tensor of the type given to `exchange_with`; that of a batch of one may lack its first axis.
Outputs (`out`, `states`, every `*_bar`) are allocated by the caller and fully overwritten; None where not wanted.
`threads` is the budget. TypeError for a dtype, ValueError for a shape that does not fit.
"""

from typing import Any, Literal, Protocol

from numpy import floating, int64
from numpy.typing import NDArray

class _Tensor(Protocol):
    def __dlpack_device__(self) -> Any: ...

_T = NDArray[Any] | _Tensor
_R = NDArray[floating[Any]] | _Tensor

__all__ = [
    "ACTIVATIONS",
    "__version__",
    "activate",
    "activate_vjp",
    "adopt_openmp",
    "all_finite",
    "available_parallelism",
    "cayley_from_matrix",
    "cayley_matrix",
    "cayley_matrix_vjp",
    "config",
    "dense_apply",
    "dense_apply_vjp",
    "exchange_with",
    "gru",
    "gru_vjp",
    "householder_apply",
    "householder_apply_kept",
    "householder_apply_vjp",
    "householder_check",
    "householder_from_matrix",
    "householder_matrix",
    "householder_matrix_vjp",
    "recurrence_dense",
    "recurrence_dense_vjp",
    "recurrence_plan",
    "recurrence_reflections",
    "recurrence_reflections_vjp",
]

__version__: str
ACTIVATIONS: tuple[str, ...]

def all_finite(array: _T) -> bool: ...
def adopt_openmp() -> bool: ...
def available_parallelism() -> int: ...
def config() -> dict[str, Any]: ...
def exchange_with(kind: type) -> bool: ...  # tensors of that type are arrays too, if it has DLPack's C exchange

# Householder: vectors (nb, n, m) T, sign (nb,) R, phases (nb, n) R

def householder_matrix(
    vectors: _T, sign: _R | None, phases: _R | None, out: _T, kept: _T | None, threads: int
) -> None: ...  # kept (nb, m (m + n)): T^-1 and T^-1 U^H E, for the gradient
def householder_matrix_vjp(
    vectors: _T,
    sign: _R | None,
    phases: _R | None,
    kept: _T | None,
    ct: _T,
    vectors_bar: _T | None,
    sign_bar: _R | None,
    phases_bar: _R | None,
    threads: int,
) -> None: ...
def householder_apply_kept(n: int, m: int, rows: int, last: bool) -> int: ...
def householder_apply(
    vectors: _T,
    sign: _R | None,
    phases: _R | None,
    x: _T,
    out: _T,
    kept: _T | None,
    adjoint: bool,
    threads: int,
) -> None: ...  # kept (nb, householder_apply_kept(...)), unless that is 0: the forward pass, for the gradient of W x
def householder_apply_vjp(
    vectors: _T,
    sign: _R | None,
    phases: _R | None,
    kept: _T | None,
    x: _T,
    ct: _T,
    vectors_bar: _T | None,
    sign_bar: _R | None,
    phases_bar: _R | None,
    x_bar: _T | None,
    adjoint: bool,
    threads: int,
) -> None: ...
def householder_check(vectors: _T) -> tuple[int, int] | None: ...
def householder_from_matrix(w: _T, vectors: _T, last: _R, tol: float) -> None: ...

# Cayley: upper (nb, n(n-1)/2) T, diagonal, signs, phases (nb, n) R, w (nb, n, n) T the forward result

def cayley_matrix(
    upper: _T, diagonal: _R | None, signs: _R | None, phases: _R | None, out: _T, threads: int
) -> None: ...
def cayley_matrix_vjp(
    w: _T,
    signs: _R | None,
    phases: _R | None,
    ct: _T,
    upper_bar: _T | None,
    diagonal_bar: _R | None,
    phases_bar: _R | None,
    threads: int,
) -> None: ...
def cayley_from_matrix(w: _T, last: _R, choose: bool, upper: _T, diagonal: _R | None, tol: float) -> None: ...

# Dense: weight (nb, p, q) T, x (nb, k, q), out (nb, k, p); adjoint the other way round

def dense_apply(weight: _T, x: _T, out: _T, adjoint: bool, threads: int) -> None: ...
def dense_apply_vjp(
    weight: _T, x: _T, ct: _T, weight_bar: _T | None, x_bar: _T | None, adjoint: bool, threads: int
) -> None: ...

# Activations: z (rows, n) T, bias (units,) R

def activate(z: _T, name: str, bias: _R | None, slope: float, out: _T, threads: int) -> None: ...
def activate_vjp(
    z: _T, name: str, bias: _R | None, slope: float, ct: _T, z_bar: _T, bias_bar: _R | None, threads: int
) -> None: ...

# Recurrence: states and ct (T, B, n)

# x (T, B, d), input_weight (n, d), h0 (B, n), bias (n,), activation, activation_bias (units,), slope, on_input,
# lengths (B,) non-increasing, reverse
_Sequence = tuple[_T, _T, _T | None, _T | None, str, _R | None, float, bool, NDArray[int64] | None, bool]
# x, input_weight, h0, bias, activation_bias
_SequenceBars = tuple[_T | None, _T | None, _T | None, _T | None, _R | None]

def recurrence_plan(reflections: int, n: int, steps: int, batch: int) -> Literal["factored", "dense"]: ...
def recurrence_dense(
    weight: _T,
    sequence: _Sequence,
    states: _T,
    threads: int,
) -> None: ...
def recurrence_dense_vjp(
    weight: _T,
    sequence: _Sequence,
    states: _T,
    ct: _T,
    weight_bar: _T | None,
    sequence_bars: _SequenceBars,
    threads: int,
) -> None: ...
def recurrence_reflections(
    vectors: _T,
    sign: _R | None,
    phases: _R | None,
    sequence: _Sequence,
    states: _T,
    threads: int,
) -> None: ...
def recurrence_reflections_vjp(
    vectors: _T,
    sign: _R | None,
    phases: _R | None,
    sequence: _Sequence,
    states: _T,
    ct: _T,
    vectors_bar: _T | None,
    sign_bar: _R | None,
    phases_bar: _R | None,
    sequence_bars: _SequenceBars,
    threads: int,
) -> None: ...

# GRU: x, w (3, n, n), u (3, n, d), b (3, n), h0 (B, n), hidden_bias (n,), reset after, activation, activation_bias,
# slope, lengths (B,) not increasing, reverse; saved (3, or 4 with reset after, T, B, n) is what the gradient reads too.
_Gru = tuple[_R, _R, _R, _R | None, _R | None, _R | None, bool, str, _R | None, float, NDArray[int64] | None, bool]
_GruBars = tuple[_R | None, _R | None, _R | None, _R | None, _R | None, _R | None, _R | None]

def gru(given: _Gru, states: _R, saved: _R | None, threads: int) -> None: ...
def gru_vjp(given: _Gru, states: _R, saved: _R, ct: _R, bars: _GruBars, threads: int) -> None: ...
