"""Maps of a free matrix X (..., n, k), n >= k, to a matrix with orthonormal columns, and the bases of such maps.

E is the first k columns of the unit matrix. `cayley` and `exponential` are the first k columns of functions of a skew
matrix of rank 2k, A = Y E^H - E Y^H with Y = tril(X). Where n is much larger than k they are computed from k x k
matrices alone: with the first k rows X1 and the others X2 of Y, A1 = X1 - X1^H and G = X2^H X2,

    A = [A1, -X2^H; X2, 0]
    (I - A/2)^{-1} (I + A/2) E = [2P - I; X2 P],   P = (I + G/4 - A1/2)^{-1}
    exp(A) E = [F; X2 H],                          [F; H] = exp([A1, -G; I, 0]) [I; 0]

I + G/4 = L L^H is at least I, so P = L^{-H} (I + S)^{-1} L^{-1} with the skew S = -L^{-1} A1 L^{-H} / 2. All this is
done in double precision, since G squares the condition of I - A/2, and where that is not enough, W is made orthonormal.

`reflected` is the thin product of the reflections below the diagonal of X, in the layout of LAPACK's geqrf, times
signs. The diagonal of a complex X has the angles of its reflections as imaginary parts: tau = (1 + e^{i angle}) /
|v|^2.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..._rules import check
from .._dispatch.function import HALF, REAL_OF, dtype_name
from .._dispatch.mode import DEVICE, KERNEL, RECORDED, mode, visible
from .._dispatch.results import computed
from ..formulas._precision import doubled, full_precision
from ..formulas._solve import triangular
from ..linalg import geqrf, householder_product, ormqr
from ..operators import Cayley, Exponential
from . import _recorded, _square, _thin
from ._signs import signs


def check_weight(name: str, weight: Tensor) -> None:
    """A weight that has these maps: dense, in a precision that is computed in or widened."""
    if weight.layout is not torch.strided:
        check.strided(name, weight.layout)
    if weight.dtype not in HALF and weight.dtype not in REAL_OF:
        check.stored(name, dtype_name(weight.dtype), or_complex=True)


def weight(name: str, x: Tensor, signs: Tensor | None, base: Tensor | None) -> Tensor:
    """B M(X), by the map of this name, with the signs of reflections. The base is square, or packed."""
    formula = lambda x, base: _weight(name, x, signs, base)
    how = mode(x, base)
    if how in (KERNEL, RECORDED) and _recorded.serves(name, x, base):
        return computed(_recorded.WEIGHT, how, None, (name, formula), (x, base))[0]
    if how is DEVICE and _has_steps(name, x) and (base is None or not base.requires_grad):
        if x.shape[-2] == x.shape[-1]:
            return _square.weight(formula, x, base)
        return _thin.weight(name, formula, x, base)
    return formula(x, base)[0]


def _weight(name: str, x: Tensor, signs: Tensor | None, base: Tensor | None) -> tuple[Tensor]:
    square = base is not None and base.shape[-2] == base.shape[-1]
    if signs is None:
        w = SKEW[name](x)
    else:
        w = reflected(x, signs, base if square else None)
        base = None if square else base
    return (w if base is None else based(base, w),)


def _has_steps(name: str, x: Tensor) -> bool:
    """Whether `_square` or `_thin` computes this map: the exponential of a square X, where the device has it; not
    complex reflections, nor, without double precision, what needs it.
    """
    if x.shape[-2] == x.shape[-1]:
        return name == "matrix_exp" and x.device.type != "mps"
    if name == "householder":
        return not x.is_complex()
    return x.device.type != "mps" or not _full_pays(x, _RATIO[name])


def reflected(x: Tensor, signs: Tensor, base: Tensor | None = None) -> Tensor:
    """B H_1 ... H_k E diag(signs), shape (..., n, k); a square base B is multiplied without forming the product."""
    tau = _tau(x)
    q = householder_product(x, tau) if base is None else ormqr(x, tau, base, left=False)
    return q * signs.unsqueeze(-2)


def _tau(x: Tensor) -> Tensor:
    size = _size(x)
    if not x.is_complex():
        return 2 / size
    angle = x.diagonal(dim1=-2, dim2=-1).imag
    return torch.complex((1 + angle.cos()) / size, angle.sin() / size)


def _size(x: Tensor) -> Tensor:
    """|v|^2 of each reflection; without abs(), which has no second derivative at 0."""
    below = x.tril(-1)
    return 1 + (below * below.conj()).real.sum(-2)


@full_precision
def cayley(x: Tensor) -> Tensor:
    """(I - A/2)^{-1} (I + A/2) E."""
    if _full_pays(x, _RATIO["cayley"]):
        return _first_columns(Cayley, -0.5, x)
    large, first, below, gram = _blocks(x)
    eye = torch.eye(first.shape[-1], dtype=first.dtype, device=first.device)
    lower = torch.linalg.cholesky_ex(eye + gram / 4)[0]
    left = triangular(lower, first, upper=False)
    skew = triangular(lower.mH, left, upper=True, left=False)
    right = triangular(lower, eye + _of_skew(Cayley, -0.5, skew), upper=False, left=False)
    twice = triangular(lower.mH, right, upper=True)  # 2P
    return _orthonormal(torch.cat((twice - eye, below @ twice / 2), -2), eye, large).to(x.dtype)


@full_precision
def exponential(x: Tensor) -> Tensor:
    """exp(A) E."""
    if _full_pays(x, _RATIO["matrix_exp"]):
        return _first_columns(Exponential, 1, x)
    large, first, below, gram = _blocks(x)
    k = first.shape[-1]
    # About ||X2||; dividing by it makes the two blocks beside the diagonal alike.
    size = gram.detach().abs().sum(-2, keepdim=True).amax(-1, keepdim=True).sqrt().clamp(min=1)
    eye = torch.eye(k, dtype=size.dtype, device=size.device)
    one = (size * eye).to(first.dtype)
    row = torch.cat((first, -gram / size), -1), torch.cat((one, torch.zeros_like(one)), -1)
    columns = torch.matrix_exp(torch.cat(row, -2))[..., :k]
    w = torch.cat((columns[..., :k, :], below @ (columns[..., k:, :] / size)), -2)
    return _orthonormal(w, eye, large).to(x.dtype)


#: The distance of W from orthonormal is up to eps ||X||^2. It is corrected where the largest entry exceeds _LARGE, or
#: _SMALL if X itself is in double precision. Where ||X|| may exceed _LARGEST the correction would not converge, so A is
#: scaled down: its angles modulo 2 pi have few correct digits anyway.
_SMALL, _LARGE, _LARGEST = 2.0**2, 2.0**7, 2.0**22


def _within(x: Tensor) -> Tensor:
    """X, multiplied by less than 1 if its norm may exceed _LARGEST."""
    most = x.detach().abs().amax((-2, -1), keepdim=True) * (x.shape[-2] * x.shape[-1]) ** 0.5
    return x * (_LARGEST / most).clamp(max=1)


def _orthonormal(w: Tensor, eye: Tensor, large: bool) -> Tensor:
    """W, made orthonormal by the steps of Newton and Schulz if X has large entries."""
    for _ in range(3 if large else 0):
        w = w + w @ (eye - w.mH @ w) / 2
    return w


#: Up to n = ratio k all n columns cost less than k x k matrices in double precision, by measurement.
_RATIO = {"cayley": 2, "matrix_exp": 4}


def _full_pays(x: Tensor, ratio: int) -> bool:
    """Whether all n columns cost less."""
    n, k = x.shape[-2:]
    return n <= max(64, ratio * k)


def _first_columns(kind: type[Cayley] | type[Exponential], factor: float, x: Tensor) -> Tensor:
    """The first k columns of the matrix of an operator of `factor` A."""
    n, k = x.shape[-2:]
    if n == k:
        return _of_skew(kind, factor, x, 2)
    return _of_skew(kind, factor, pad(x, (0, n - k)), 2)[..., :k].contiguous()


def _of_skew(kind: type[Cayley] | type[Exponential], factor: float, a: Tensor, diagonal: float = 1) -> Tensor:
    """The matrix of an operator of `factor` A, from the lower triangle of the skew A; its diagonal is a multiple of
    A's."""
    n = a.shape[-1]
    row, column = torch.triu_indices(n, n, 1, device=a.device)
    # in one axis, where torch gathers and adds up several times as fast
    upper = a.flatten(-2).index_select(-1, column * n + row).conj() * -factor
    imaginary = a.diagonal(dim1=-2, dim2=-1).imag * (factor * diagonal) if a.is_complex() else None
    return kind(upper, diagonal=imaginary).matrix()


def _blocks(x: Tensor) -> tuple[bool, Tensor, Tensor, Tensor]:
    """Whether X has large entries, or they cannot be read; A1, X2 and G, `doubled`."""
    wide, k = doubled(x), x.shape[-1]
    large = not visible(x) or wide.detach().abs().max().item() > (_SMALL if wide is x else _LARGE)
    x = _within(wide) if large else wide
    first, below = x.narrow(-2, 0, k).tril(), x.narrow(-2, k, x.shape[-2] - k)
    return large, first - first.mH, below, below.mH @ below


#: The maps by the names that torch gives them.
SKEW: dict[str, Callable[[Tensor], Tensor]] = {"matrix_exp": exponential, "cayley": cayley}


# ---------------------------------------------------------------- from an orthogonal matrix


def packed(q: Tensor) -> Tensor:
    """X with `reflected(X, signs(X))` = Q, if the columns of Q are orthonormal; else Q made so by Gram and Schmidt."""
    a, tau = geqrf(q)
    x, sign = a.tril(-1), signs(a)
    if x.is_complex():
        diagonal = torch.complex(sign, (tau * _size(x) - 1).angle())
    else:
        diagonal = torch.where(tau == 0, -sign, sign)  # geqrf leaves out what is the identity, `reflected` does not
    x.diagonal(dim1=-2, dim2=-1).copy_(diagonal)
    return x


def base(q: Tensor) -> Tensor:
    """The base whose first columns are Q, made orthonormal if they are not: itself if square, else `packed`."""
    n, k = q.shape[-2:]
    if n == k:
        gap = q.mH @ q - torch.eye(n, dtype=q.dtype, device=q.device)
        if gap.is_meta or not gap.numel() or gap.abs().max() <= 10 * n * torch.finfo(q.dtype).eps:
            return q.clone()
    x = packed(q)
    return reflected(x, signs(x)) if n == k else x


@full_precision
def based(base: Tensor, w: Tensor) -> Tensor:
    """B W."""
    k = base.shape[-1]
    if base.shape[-2] == k:
        return base @ w
    # The packed matrix stands for H_1 ... H_k diag(signs, 1, ..., 1).
    first = w[..., :k, :] * signs(base).unsqueeze(-1)
    return ormqr(base, _tau(base), torch.cat((first, w[..., k:, :]), -2))


def thinned(full: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """A packed base and the X with which it gives the same W as an n x n base does with the given X.

    The two bases differ by a rotation of the last n - k columns, under which every map only rotates the rows of X2.
    """
    k = x.shape[-1]
    thin = packed(full[..., :k])
    rotation = ormqr(thin, _tau(thin), full[..., k:], True, True)[..., k:, :]
    return thin, torch.cat((x.narrow(-2, 0, k), rotation @ x.narrow(-2, k, x.shape[-2] - k)), -2)
