"""Shared by the `random` constructors: their keywords, random numbers of a dtype on a device, stacks."""

import math
from collections.abc import Sequence
from typing import Literal, TypedDict

import torch
from torch import Tensor

from ..._objects._random import stackable as stackable_with
from ..._rules import check
from .._dispatch.function import COMPLEX_OF, REAL_OF, dtype_name


class Drawing(TypedDict, total=False):
    """The keywords of every `random`."""

    generator: torch.Generator | None
    dtype: torch.dtype | None
    device: torch.device | str | None
    batch_shape: Sequence[int]


#: Makes a `random` that takes them.
stackable = stackable_with(
    {"generator": "torch.Generator | None", "dtype": "torch.dtype | None", "device": "torch.device | str | None"}
)


class Draw:
    """Random numbers by the keywords of `random`; with `field` the matrix is real, or complex, by its definition."""

    def __init__(self, options: Drawing, field: Literal["real", "complex"] | None = None) -> None:
        generator, dtype = options.get("generator"), options.get("dtype")
        if generator is not None and not isinstance(generator, torch.Generator):
            check.kind("generator", "a torch.Generator", generator)
        given, dtype = dtype, torch.get_default_dtype() if dtype is None else dtype
        if not isinstance(dtype, torch.dtype):
            check.kind("dtype", "a torch.dtype", dtype)
        check.floating("dtype", dtype_name(dtype))
        if field == "complex" and given is None:
            dtype = COMPLEX_OF[dtype]
        if field is not None:
            (check.real if field == "real" else check.complex_only)("dtype", dtype_name(dtype))
        self.dtype, self.generator, self.device = dtype, generator, options.get("device")
        self.real = REAL_OF[dtype]

    def unit(self, *shape: int) -> Tensor:
        """Real numbers, uniform on [0, 1)."""
        return torch.rand(shape, generator=self.generator, dtype=self.real, device=self.device)

    def uniform(self, *shape: int) -> Tensor:
        """Real numbers, uniform on [-1, 1)."""
        return 2 * self.unit(*shape) - 1

    def angles(self, *shape: int) -> Tensor:
        """Uniform on [-pi, pi)."""
        return math.pi * self.uniform(*shape)

    def normal(self, *shape: int) -> Tensor:
        """Gaussian numbers of the dtype."""
        return torch.randn(shape, generator=self.generator, dtype=self.dtype, device=self.device)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Uniform on low .. high - 1."""
        return torch.randint(low, high, shape, generator=self.generator, device=self.device)

    def filled(self, value: float, *shape: int) -> Tensor:
        """Real numbers that are not random."""
        return torch.full(shape, value, dtype=self.real, device=self.device)

    def haar(self, n: int, batch: tuple[int, ...] = (), special: bool = False) -> Tensor:
        """Haar-distributed orthogonal or unitary matrices: Q of Gaussian ones, times the phases of diag(R); with
        `special` of determinant 1, by a first column divided by it.
        """
        # In double precision, so that W is orthogonal to rounding in single precision too; "mps" has none.
        wide = self.dtype
        if torch.empty(0, device=self.device).device.type != "mps":
            wide = torch.complex128 if wide.is_complex else torch.float64
        q, r = torch.linalg.qr(torch.randn(*batch, n, n, generator=self.generator, dtype=wide, device=self.device))
        w = q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
        if special:
            w[..., 0] *= torch.linalg.det(w).conj().unsqueeze(-1)
        # torch's Q is column-major
        return w.to(self.dtype).contiguous()
