"""Shared by tests of parametrised weights: modules, the distance from orthogonality, and Q."""

import pytest
import torch

MAPS = ("householder", "cayley", "matrix_exp")
EVERY = pytest.mark.parametrize("name", MAPS)
TIGHT = 1e-12


class Holder(torch.nn.Module):
    """A module with one weight."""

    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(weight)


def linear(*shape, dtype=torch.float64):
    return torch.nn.Linear(*shape[::-1], bias=False, dtype=dtype)


def original(module):
    return module.parametrizations.weight.original


def gap(w):
    """How far the columns, or rows if wide, are from orthonormal."""
    w = w.detach().to(torch.complex128 if w.is_complex() else torch.float64)
    w = w if w.shape[-2] >= w.shape[-1] else w.mT
    return (w.mH @ w - torch.eye(w.shape[-1])).abs().max().item()


def q_of(w):
    """Q of the QR factorisation with a positive diagonal of R; of the transpose if wide."""
    tall = w if w.shape[-2] >= w.shape[-1] else w.mT
    q, r = torch.linalg.qr(tall.detach())
    q = q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return q if tall is w else q.mT
