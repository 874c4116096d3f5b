"""The same operators in plain torch, as a careful user would write them: the peers, and the float64 reference."""

from __future__ import annotations

import torch
from torch import Tensor


def wy_triangle(u: Tensor) -> Tensor:
    """T = striu(U^T U) + diag(U^T U) / 2, with W = I - U T^-1 U^T."""
    gram = u.T @ u
    return torch.triu(gram, 1) + 0.5 * torch.diag(torch.diagonal(gram))


def wy_matrix(u: Tensor) -> Tensor:
    return torch.eye(u.shape[0], dtype=u.dtype, device=u.device) - u @ torch.linalg.solve_triangular(
        wy_triangle(u), u.T, upper=True
    )


def wy_apply(u: Tensor, x: Tensor) -> Tensor:
    """Rows of x times W^T."""
    return x - torch.linalg.solve_triangular(wy_triangle(u), (x @ u).T, upper=True).T @ u.T


def loop_apply(u: Tensor, x: Tensor) -> Tensor:
    """Rows of x times W^T, one reflection after another."""
    norms = (u * u).sum(0)
    for k in range(u.shape[1] - 1, -1, -1):
        x = x - (2 / norms[k]) * torch.outer(x @ u[:, k], u[:, k])
    return x


def householder_product(u: Tensor) -> Tensor:
    """W by torch.linalg.householder_product: unit diagonal, tau = 2 / ||v||^2; u lower-trapezoidal."""
    n, m = u.shape
    v = torch.tril(u / torch.diagonal(u).unsqueeze(0), -1) + torch.eye(n, m, dtype=u.dtype, device=u.device)
    tau = 2 / (v * v).sum(0)
    return torch.linalg.householder_product(v if m == n else torch.cat([v, v.new_zeros(n, n - m)], 1), tau)


def skew(p: Tensor) -> Tensor:
    """A from the strict upper triangle of p."""
    a = torch.triu(p, 1)
    return a - a.mT


def cayley(a: Tensor, signs: Tensor | float = 1.0) -> Tensor:
    """W = (I + A)^-1 (I - A) D by one solve."""
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return torch.linalg.solve(eye + a, (eye - a).expand_as(a)) * signs


def packed(matrix: Tensor) -> Tensor:
    """The strict upper triangle, row by row."""
    i, j = torch.triu_indices(matrix.shape[-1], matrix.shape[-1], 1)
    return matrix[..., i, j]


def modrelu(z: Tensor, bias: Tensor) -> Tensor:
    return torch.sign(z) * torch.relu(z.abs() + bias)


def leaky_relu(z: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.leaky_relu(z + bias, 0.1)
