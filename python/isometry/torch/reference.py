"""The textbook formulas in torch operations, differentiable in every mode of torch.

    W = I - U T^{-1} U^H,  T = striu(U^H U) + diag(U^H U) / 2      product of Householder reflections W = (I + A)^{-1}
    (I - A) D                                     scaled Cayley transform h_t = phi(W h_{t-1} + V x_t + b)
    recurrence

They are used for tensors that are not on the CPU, forward mode, second derivatives, `torch.func` and `torch.compile`;
everything else runs in the kernels, which are tested against them. Operators have no batch axis, with x of shape
(..., n), or one, (nb, n, m), with x of shape (nb, k, n). For derivations see docs/math.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

import torch
from torch import Tensor

from ._function import autocast

P = ParamSpec("P")


def _full_precision(formula: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """The formula in the precision of its arguments, since autocast would compute products in half precision."""

    @functools.wraps(formula)
    def exact(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        device = next(a.device for a in args if isinstance(a, Tensor))
        if not autocast(device):
            return formula(*args, **kwargs)
        with torch.autocast(device.type, enabled=False):
            return formula(*args, **kwargs)

    return exact


# ---------------------------------------------------------------- products of Householder reflections


def _last_factor(vectors: Tensor, sign: Tensor | None, phases: Tensor | None) -> Tensor | None:
    """The diagonal of E, shape (n,) or (nb, n); None for E = I."""
    if phases is not None:
        return torch.polar(torch.ones_like(phases), phases)
    if sign is None:
        return None
    ones = torch.ones((*vectors.shape[:-2], vectors.shape[-2] - 1), dtype=sign.dtype, device=sign.device)
    return torch.cat((ones, sign.unsqueeze(-1)), -1)


def _triangle(vectors: Tensor) -> Tensor:
    """T of the compact WY form, (..., m, m)."""
    gram = vectors.mH @ vectors
    return gram.triu(1) + torch.diag_embed(0.5 * gram.diagonal(dim1=-2, dim2=-1))


def _reflect(vectors: Tensor, y: Tensor, adjoint: bool) -> Tensor:
    """(I - U T^{-1} U^H) y for rows y of shape (..., k, n), with T^{-H} instead of T^{-1} for the adjoint."""
    t = _triangle(vectors)
    coefficients = (y @ vectors.conj()).mT
    solved = torch.linalg.solve_triangular(t.mH if adjoint else t, coefficients, upper=not adjoint)
    return y - (vectors @ solved).mT


@_full_precision
def householder_apply(
    vectors: Tensor, sign: Tensor | None, phases: Tensor | None, x: Tensor, adjoint: bool = False
) -> Tensor:
    """Rows W x, or W^H x, of W = H(u_0) ... H(u_{m-1}) E."""
    last = _last_factor(vectors, sign, phases)
    if last is not None and vectors.dim() == 3:
        last = last.unsqueeze(-2)
    y = x if last is None or adjoint else x * last
    # Also for m = 0: the sum over no terms is zero, and its graph contains the vectors.
    flat = y if vectors.dim() == 3 else y.reshape(-1, y.shape[-1])
    y = _reflect(vectors, flat, adjoint).reshape(y.shape)
    return y * last.conj() if adjoint and last is not None else y


@_full_precision
def householder_matrix(vectors: Tensor, sign: Tensor | None, phases: Tensor | None) -> Tensor:
    """W = (I - U T^{-1} U^H) E, shape (..., n, n)."""
    eye = torch.eye(vectors.shape[-2], dtype=vectors.dtype, device=vectors.device)
    w = eye - vectors @ torch.linalg.solve_triangular(_triangle(vectors), vectors.mH, upper=True)
    last = _last_factor(vectors, sign, phases)
    return w if last is None else w * last.unsqueeze(-2)


# ---------------------------------------------------------------- scaled Cayley transform


def skew(upper: Tensor, diagonal: Tensor | None, n: int) -> Tensor:
    """A with A[i, j] = upper (i < j, row by row), A[j, i] = -conj(A[i, j]), A[j, j] = i diagonal[j]."""
    # One gather from [upper | -conj(upper) | diagonal]: out of place, so that vmap over any argument works.
    k = upper.shape[-1]
    row, column = torch.triu_indices(n, n, 1, device=upper.device)
    places = torch.arange(k, device=upper.device)
    index = torch.empty(n, n, dtype=torch.int64, device=upper.device)
    index = index.index_put((row, column), places).index_put((column, row), places + k)
    own = torch.arange(n, device=upper.device)
    index = index.index_put((own, own), own + 2 * k)
    if diagonal is None:
        middle = upper.new_zeros((*upper.shape[:-1], n))
    else:
        middle = torch.complex(torch.zeros_like(diagonal), diagonal)
    packed = torch.cat((upper, -upper.conj(), middle), -1)
    return packed.index_select(-1, index.reshape(-1)).unflatten(-1, (n, n))


def cayley(a: Tensor) -> Tensor:
    """(I + A)^{-1} (I - A)."""
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    if a.is_cpu:
        return torch.linalg.solve(eye + a, eye - a)
    # `solve` synchronises with the device to raise for a zero pivot; here I + A is singular through rounding only.
    solution: Tensor = torch.linalg.solve_ex(eye + a, eye - a)[0]
    return solution


@_full_precision
def cayley_matrix(
    upper: Tensor, diagonal: Tensor | None, signs: Tensor | None, phases: Tensor | None, n: int
) -> Tensor:
    """W = (I + A)^{-1} (I - A) D, shape (..., n, n)."""
    w = cayley(skew(upper, diagonal, n))
    if phases is not None:
        return w * torch.polar(torch.ones_like(phases), phases).unsqueeze(-2)
    return w if signs is None else w * signs.unsqueeze(-2)


# ---------------------------------------------------------------- dense


@_full_precision
def dense_apply(weight: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """Rows W x, or W^H x."""
    return x @ (weight.conj() if adjoint else weight.mT)


# ---------------------------------------------------------------- activations


def _oplu(z: Tensor, halves: bool) -> Tensor:
    """(max, min) of each pair; a tie counts as ordered."""
    n = z.shape[-1]
    a, b = z.split(n // 2, -1) if halves else z.unflatten(-1, (n // 2, 2)).unbind(-1)
    swap = b > a
    high, low = torch.where(swap, b, a), torch.where(swap, a, b)
    return torch.cat((high, low), -1) if halves else torch.stack((high, low), -1).flatten(-2)


def _modrelu(z: Tensor, bias: Tensor) -> Tensor:
    """(|z| + b) z / |z| where |z| + b > 0 and z != 0, else 0; NaN propagates."""
    zero = z == 0
    # z / |z| is evaluated at 1 instead of 0, so that the unused branch has no NaN derivative.
    safe = torch.where(zero, torch.ones_like(z), z)
    # With e = z / |z| the cotangent of the bias is Re(conj(e) f_bar), which does not depend on |z|.
    size = safe.abs()
    unit = safe / size if z.is_complex() else safe.sign()
    return torch.where(zero | (size + bias <= 0), torch.zeros_like(z), safe + bias * unit)


def _modrelu_realrep(z: Tensor, bias: Tensor) -> Tensor:
    """modReLU of a[:n] + i a[n:]."""
    out = _modrelu(torch.complex(*z.split(z.shape[-1] // 2, -1)), bias)
    return torch.cat((out.real, out.imag), -1)


def activate(z: Tensor, name: str, bias: Tensor | None = None, slope: float = 0.1) -> Tensor:
    """The activation `name`."""
    if name == "identity":
        return z.clone()
    if name == "modrelu":
        assert bias is not None
        return _modrelu(z, bias)
    if z.is_complex():
        return torch.complex(activate(z.real, name, bias, slope), activate(z.imag, name, bias, slope))
    if name == "modrelu_realrep":
        assert bias is not None
        return _modrelu_realrep(z, bias)
    if name == "leaky_relu":
        return torch.where(z > 0, z, slope * z)
    if name in ("oplu", "oplu_halves"):
        return _oplu(z, name == "oplu_halves")
    elementwise: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}
    return elementwise[name](z)


# ---------------------------------------------------------------- recurrence


@_full_precision
def recurrence(
    weight: Tensor,
    x: Tensor,
    input_weight: Tensor,
    h0: Tensor | None,
    bias: Tensor | None,
    activation: str,
    activation_bias: Tensor | None,
    slope: float,
    on_input: bool,
    lengths: Tensor | None,
    reverse: bool,
) -> Tensor:
    """States (T, B, n) of h <- phi(W h + V x_t + b), or W h + phi(V x_t + b), one step at a time."""
    steps, batch = x.shape[:2]
    if lengths is not None:
        inside = torch.arange(steps, device=x.device)[:, None, None] < lengths[:, None]
        # Data past the end of a sequence must not reach a gradient, not even as 0 * NaN.
        x = torch.where(inside, x, torch.zeros_like(x))
    drive = x @ input_weight.mT
    drive = drive if bias is None else drive + bias
    drives = (activate(drive, activation, activation_bias, slope) if on_input else drive).unbind(0)
    h = drive.new_zeros((batch, weight.shape[0])) if h0 is None else h0
    states: list[Tensor] = []
    for t in reversed(range(steps)) if reverse else range(steps):
        new = h @ weight.mT + drives[t]
        new = new if on_input else activate(new, activation, activation_bias, slope)
        if lengths is None:
            h = new
            states.append(h)
        else:
            h = torch.where(inside[t], new, h)
            states.append(torch.where(inside[t], new, torch.zeros_like(new)))
    return torch.stack(states[::-1] if reverse else states)
