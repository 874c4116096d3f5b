"""The extension module: stateless functions on C-ordered, aligned arrays of one dtype T; R is its real type.

An array is NumPy's, a tensor of the type given to `exchange_with`, or, where the place is the GPU, a `GpuArray`; for a
batch of one the first axis may be omitted. Outputs (`out`, `states`, every `*_bar`) are allocated by the caller and
fully overwritten; None if not requested. `threads` is the budget; a `place` is one, or the GPU. TypeError for a dtype,
ValueError for a shape that does not fit.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, Self

from numpy import dtype, floating, int64
from numpy.typing import NDArray
from typing_extensions import disjoint_base

# Of float32 or complex64. Calls on the GPU return before it is computed.
@disjoint_base
class GpuArray:
    def __new__(cls, shape: Sequence[int], complex_: bool = False, of: GpuArray | None = None) -> Self: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> dtype[Any]: ...

class _Tensor(Protocol):
    def __dlpack_device__(self) -> Any: ...

_T = NDArray[Any] | _Tensor | GpuArray
_R = NDArray[floating[Any]] | _Tensor | GpuArray
_Place = int | Literal["gpu"]

__version__: str
ACTIVATIONS: tuple[str, ...]

class Argument(NamedTuple):
    name: str
    axes: str
    kind: Literal["matrix", "complex", "real", "angles", "number", "integer", "shape"]
    trained: bool
    group: str
    list: bool

OBJECTS: dict[str, tuple[Argument, ...]]

def all_finite(array: _T) -> bool: ...
def adopt_openmp() -> bool: ...
def available_parallelism() -> int: ...
def config() -> dict[str, Any]: ...
def multiply_adds(rounds: int, threads: int) -> int: ...  # the operations made, in registers
def exchange_with(kind: type) -> bool: ...  # tensors of that type are arrays too, if it has DLPack's C exchange

# Operators: the arguments of an object in the order of OBJECTS, those of the matrix's type T and real ones R, each with
# the batch as its first axis. A forward call that is asked to save returns what its backward may start from, an array
# or `out` itself, or None. `bars` has the shapes of the arguments.

_Arguments = tuple[_T | _R | None, ...]

def operator_check(object: str, arguments: _Arguments) -> None: ...  # values; each array with a batch of its own
def operator_matrix(object: str, arguments: _Arguments, out: _T, save: bool, place: _Place) -> Any: ...
def operator_matrix_vjp(
    object: str, arguments: _Arguments, saved: _T | None, ct: _T, bars: _Arguments, place: _Place
) -> None: ...
def operator_apply(
    object: str, arguments: _Arguments, x: _T, out: _T, adjoint: bool, save: bool, place: _Place
) -> Any: ...  # x (nb, k, n), or of any shape (..., n) for one operator
def operator_apply_vjp(
    object: str,
    arguments: _Arguments,
    saved: _T | None,
    x: _T,
    ct: _T,
    bars: _Arguments,
    x_bar: _T | None,
    adjoint: bool,
    place: _Place,
) -> None: ...

# Rows times a block-diagonal matrix: w (nb, p, q), x (rows, nb, q), out and ct (rows, nb, p)

def blocks_apply(w: _T, x: _T, out: _T, threads: int) -> None: ...
def blocks_apply_vjp(w: _T, x: _T, ct: _T, w_bar: _T | None, x_bar: _T | None, threads: int) -> None: ...

# Inverse maps: w (nb, n, n) T, last (nb,) or (nb, n) R, tol the largest entry of |W^H W - I| accepted

def triangle(x: _T, upper: _T, factor: float, back: bool) -> None: ...
def hadamard_transform(x: _T, scale: float, adjoint: bool, out: _T, threads: int) -> None: ...
def householder_from_matrix(w: _T, vectors: _T, last: _R, tol: float) -> None: ...
def cayley_from_matrix(w: _T, last: _R, choose: bool, upper: _T, diagonal: _R | None, tol: float) -> None: ...
def cayley_from_rotvec(rotvec: _R, upper: _R) -> bool: ...
def exponential_from_matrix(w: _R, upper: _R, tol: float) -> None: ...

# Products of reflections in LAPACK's storage: a (batch, m, k), tau (batch, k), other (batch, m, n) or (batch, n, m) T

def linalg_product(a: _T, tau: _T, out: _T, threads: int) -> None: ...
def linalg_product_vjp(a: _T, tau: _T, ct: _T, a_bar: _T, tau_bar: _T, threads: int) -> None: ...
def linalg_apply(a: _T, tau: _T, other: _T, left: bool, adjoint: bool, out: _T, threads: int) -> None: ...
def linalg_apply_vjp(
    a: _T,
    tau: _T,
    other: _T,
    ct: _T,
    left: bool,
    adjoint: bool,
    a_bar: _T | None,
    tau_bar: _T | None,
    other_bar: _T | None,
    threads: int,
) -> None: ...

# QR: a and out (batch, m, n), tau (batch, min(m, n)) T

def linalg_geqrf(a: _T, out: _T, tau: _T, threads: int) -> None: ...
def linalg_geqrf_vjp(a: _T, tau: _T, ct: _T, tau_ct: _T, out: _T, threads: int) -> None: ...
def linalg_procrustes(a: _T, special: bool, out: _T, threads: int) -> None: ...
def linalg_procrustes_vjp(a: _T, w: _T, ct: _T, special: bool, out: _T, threads: int) -> None: ...

# Activations: z (rows, n) T, bias (units,) R

def activate(z: _T, name: str, bias: _R | None, slope: float, out: _T, threads: int) -> None: ...
def activate_vjp(
    z: _T, name: str, bias: _R | None, slope: float, ct: _T, z_bar: _T, bias_bar: _R | None, threads: int
) -> None: ...

# Sequences: a cell of CELLS, its operator, its arrays in their order with the state before marked steps last, the law
# (activation, slope, settings), the steps (lengths (B,) not increasing, reverse, marks (T, B)). Results are the states
# (T, B, width n), the memory (B, n, n), and what the gradient reads too. In an ensemble every array has the members as
# first axis, of size 1 where one serves all; results and gradients have an entry per member.
# The state before marked steps is (B, width n) for all of them, or (T, B, width n): before a mark at [t, b] it
# is the one at [t, b], in both directions. The others are not read, and their gradient is zero.
_Object = tuple[str, _Arguments] | None
_Law = tuple[str, float, Sequence[float | None]]
_Steps = tuple[Any | None, bool, Any | None]

# All states, or those that are wanted of: all, the last of each sequence (B, n), those at the borders of the segments
# of a checkpoint (K, B, n), and its name. A gradient of the last alone has a cotangent (B, n).
_Kept = Any | tuple[Any, Any, Any, str | None]
_Results = tuple[_Kept, Any | None, Any | None]

_Packs = tuple[tuple[str, list[int]], ...]
CELLS: dict[str, tuple[tuple[tuple[str, str, bool], ...], tuple[str, ...], int, int, str, str, str, str, _Packs]]

def recurrence_route(
    object: str, arguments: _Arguments, steps: int, batch: int, gated: bool = False
) -> Literal["factored", "dense"]: ...
def recurrence_marks(checkpoint: str, steps: int, batch: int, saved: int, width: int) -> int: ...
def pack(matrices: Sequence[_T], out: _R | None = None) -> int: ...
def plain_sequence(
    cell: str,
    law: _Law,
    matrices: tuple[Any | None, Any | None],
    arrays: tuple[Any, ...],
    states: tuple[Any, ...] | None,
    last: tuple[Any, ...],
    output: Any | None,
    order: tuple[bool, Sequence[int] | None],
    threads: int,
) -> bool: ...
def sequence(
    cell: str,
    transition: _Object,
    arrays: tuple[Any, ...],
    law: _Law,
    steps: _Steps,
    results: _Results,
    place: _Place,
    packs: Any | None = None,
    members: int | None = None,
) -> None: ...
def sequence_vjp(
    cell: str,
    transition: _Object,
    arrays: tuple[Any, ...],
    law: _Law,
    steps: _Steps,
    results: _Results,
    cts: tuple[Any, Any | None],
    bars: tuple[Any, ...],
    transition_bars: _Arguments,
    place: _Place,
    members: int | None = None,
) -> None: ...

# Delta rule: (q, k, v, beta, g, the initial state), cu_seqlens, householders, scale, normalise; outcome: o, the
# states, those saved; cts of o and the states.
_Delta = tuple[tuple[_R, _R, _R, _R, _R | None, _R | None], NDArray[int64] | None, int, float, bool]
_DeltaBars = tuple[_R | None, ...]

def delta_rule(given: _Delta, outcome: tuple[_R, _R, _R | None, bool], place: _Place) -> None: ...
def delta_rule_vjp(given: _Delta, saved: _R | None, cts: tuple[_R, _R], bars: _DeltaBars, place: _Place) -> None: ...
def gpu_activate(z: GpuArray, name: str, bias: GpuArray | None, slope: float, out: GpuArray) -> None: ...
def gpu_activate_vjp(
    z: GpuArray,
    name: str,
    bias: GpuArray | None,
    slope: float,
    ct: GpuArray,
    z_bar: GpuArray,
    bias_bar: GpuArray | None,
) -> None: ...
def gpu_download(array: GpuArray) -> NDArray[Any]: ...
def gpu_hadamard_transform(x: GpuArray, scale: float, out: GpuArray) -> None: ...
def gpu_adapters() -> list[tuple[str, str, str, str, int, bool]]: ...
def gpu_cells() -> list[str]: ...
def gpu_combine(
    a: GpuArray, alpha: tuple[float, float], b: GpuArray | None, beta: tuple[float, float], out: GpuArray
) -> None: ...
def gpu_objects() -> list[str]: ...
def gpu_reset() -> None: ...
def gpu_statistics() -> list[tuple[str, int]]: ...
def gpu_tiles(side: int | None) -> None: ...
def gpu_upload(array: NDArray[Any], out: GpuArray) -> None: ...
def gpu_wait() -> None: ...
