"""W = exp(A), A skew-symmetric or skew-Hermitian: a Taylor polynomial of A / 2^s, and s squarings.

All products are torch's, which gives derivatives of every order. `torch.linalg.matrix_exp` computes its derivative from
the exponential of a matrix that contains the cotangent, and loses accuracy as the cotangent grows.

Squarings double the distance from unitary. A step of Newton and Schulz, X + X (I - X^H X) / 2, squares it and leaves a
unitary matrix as it is.
"""

import math

import torch
from torch import Tensor

from ..._objects._declaration import packed_size
from .._dispatch.mode import visible
from ._precision import full_precision
from ._skew import skew

DEGREE = 16  # of the polynomial; divisible by 4
NORM = {torch.float32: 2.0, torch.float64: 0.5}  # up to which its remainder, and that of its derivative, are below eps
BLOCK = 8  # squarings between two steps of Newton and Schulz


def polynomial(a: Tensor) -> Tensor:
    """The Taylor polynomial of exp, in powers of A^4."""
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    second = a @ a
    powers = (eye, a, second, second @ a)
    fourth = second @ second
    sum_ = eye / math.factorial(DEGREE)
    for first in range(DEGREE - 4, -1, -4):
        sum_ = sum_ @ fourth + sum(p / math.factorial(first + i) for i, p in enumerate(powers))
    return sum_


def unitary(x: Tensor) -> Tensor:
    """Closer to unitary."""
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return x + x @ (eye - x.mH @ x) / 2


@full_precision
def matrix(upper: Tensor, diagonal: Tensor | None) -> Tensor:
    """W = exp(A), shape (..., n, n)."""
    a = skew(upper, diagonal, packed_size("upper", upper.shape[-1]))
    size = a.detach().abs().sum(-2).amax(-1)
    s = (size / NORM[size.dtype]).log2().ceil().clamp(min=0)
    # Beyond 1/eps an angle carries no information: W remains unitary.
    most = round(-math.log2(torch.finfo(size.dtype).eps))
    if s.numel() and visible(s):
        most = int(s.nan_to_num().clamp(max=most).max())
    s = s[..., None, None]
    w = polynomial(a * torch.exp2(-s))
    for k in range(most):
        w = torch.where(k < s, w @ w, w)
        if k % BLOCK == BLOCK - 1:
            w = unitary(w)
    return unitary(w)
