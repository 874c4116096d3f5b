"""`torch.nn.utils.parametrizations.orthogonal` on this package's kernels: any weight orthogonal or unitary.

The weight is W = B M(X), for a wide weight its transpose: X is the trained tensor, B the fixed orthogonal base, and M
one of the maps of `_maps`, which give X = 0 the first columns of the unit matrix. Without
``use_trivialization`` there is no B. X and B of a square weight are torch's own. The base of a thin one, n x k, is the
product of k reflections and of signs, stored in the form that `geqrf` gives them: it stands for an n x n matrix.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .._bases import Orthonormal, nearest
from .._dispatch.function import HALF, REAL_OF, widened
from .._divided import divided, gathered, is_divided
from .._stored import Contiguous, arrange
from . import _maps
from ._signs import settle, settle_part, trained_signs


def orthogonal(
    module: nn.Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> nn.Module:
    """Make a weight of a module orthogonal or unitary: orthonormal columns, or rows if there are more columns.

    The same call as `torch.nn.utils.parametrizations.orthogonal`, with the same initial weights and errors.

    Parameters
    ----------
    module : torch.nn.Module
        Any module; changed in place.
    name : str
        Its parameter or buffer, a matrix or a stack of matrices (..., n, k), real or complex.
    orthogonal_map : {"householder", "cayley", "matrix_exp"}, optional
        How free numbers become an orthogonal matrix: as k reflections, or by the Cayley transform or the exponential of
        a skew-symmetric or skew-Hermitian matrix. By default "matrix_exp" for square and for complex weights, else
        "householder", which is the fastest for thin weights.
    use_trivialization : bool
        Keep the initial or last assigned weight as a fixed base, so that the trained numbers start at zero. With False
        the maps "cayley" and "matrix_exp" cannot be assigned to.

    Returns
    -------
    torch.nn.Module
        The module. ``module.parametrizations[name].original`` is the trained tensor, of the shape of the weight;
        ``module.weight = q`` sets the weight, made orthogonal by a QR factorisation if it is not.

    Raises
    ------
    ValueError
        No such tensor, one of fewer than two axes, or an unknown map; later, an assigned tensor of another shape.
    NotImplementedError
        Assigning to "cayley" or "matrix_exp" with ``use_trivialization=False``.
    TypeError
        A sparse tensor, or one of another dtype, such as int8.

    See Also
    --------
    isometry.torch.init.orthogonal_ : an orthogonal matrix to start from, not kept.
    isometry.torch.nn.OperatorModule : any operator as a module.
    isometry.torch.adapters.attach : a frozen weight, multiplied by an orthogonal matrix.
    :doc:`orthogonal-weights` : maps, convolutions and checkpoints.

    Notes
    -----
    Different from torch's: every optimiser and weight decay keep W orthogonal (torch's reflections become zero, since
    the signs that it multiplies by are part of the trained tensor); complex weights have reflections too; float16 and
    bfloat16 weights are computed in float32 and rounded once; W stays orthogonal in another precision and in an average
    of weights; a thin weight of shape (n, k) has a base of its own size, not (n, n), and no n x n intermediate. State
    dicts of torch load, with the same weight, those of a square weight into torch as well.

    With reflections the signs of W are the sign bits on the (real part of the) diagonal of the trained tensor, which
    has no gradient. A read of the weight that records gradients, and `state_dict`, make these entries 1 or -1 again in
    the parameter's own memory, so a step of an optimiser that moves them by less than 1, as weight decay does, changes
    no sign. They stay as they are behind another parametrization, and in a weight that `fully_shard` has divided:
    there an optimiser that moves them through zero in many steps, such as Muon or ``Adam(weight_decay=...)``, turns a
    column of W around.

    The cost of a forward and a backward pass is of order n k^2.

    References
    ----------
    Lezcano-Casado: Trivializations for gradient-based optimization on manifolds, NeurIPS 2019.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> layer = it.parametrizations.orthogonal(torch.nn.Linear(20, 40))
    >>> w = layer.weight
    >>> bool((w.T @ w - torch.eye(20)).abs().max() < 1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    _maps.check_weight(name, weight)
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in (*_maps.SKEW, "householder"):
        known = ", ".join(f'"{known}"' for known in (*_maps.SKEW, "householder"))
        raise ValueError(f"orthogonal_map has to be one of {known}. Got: {orthogonal_map}")
    law = _Orthogonal(weight, orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, law, unsafe=True)
    chain: Any = module.parametrizations[name]  # type: ignore[index]
    if chain[0] is law:
        chain.__class__ = _Chain
        arrange(chain)
        chain.register_load_state_dict_pre_hook(_adopt)
        if orthogonal_map == "householder":
            chain.register_state_dict_post_hook(_settle_entry)
    return module


class _Chain(Contiguous, parametrize.ParametrizationList):
    """A chain of parametrisations that begins with this one."""


class _Orthogonal(Contiguous):
    """W from X, and X and the base from an assigned W."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)
        square = weight.shape[-2] == weight.shape[-1]
        self._orthonormal = Orthonormal() if use_trivialization and square else None

    def extra_repr(self) -> str:
        return f"{self.orthogonal_map}, use_trivialization={self.use_trivialization}"

    def forward(self, x: Tensor) -> Tensor:
        if 0 in x.shape[-2:]:  # the maps divide by norms and find n from the number of entries
            return x.clone()
        wide = x.shape[-2] < x.shape[-1]
        tall = widened(x.transpose(-2, -1) if wide else x)  # x.mT of a leaf waits with the interpreter's lock
        signs = trained_signs(x).to(REAL_OF[tall.dtype]) if self.orthogonal_map == "householder" else None
        w = _maps.weight(self.orthogonal_map, tall, signs, self._full_base(tall.dtype))
        return (w.mT if wide else w).to(x.dtype)

    def _full_base(self, dtype: torch.dtype) -> Tensor | None:
        """The base in this precision of the kernels; None where there is none, as behind another parametrization."""
        base = self.base if self.use_trivialization else None
        if base is None:
            return None
        return base.to(dtype) if self._orthonormal is None else self._orthonormal(base, dtype)

    def _apply(self, fn: Any, recurse: bool = True) -> _Orthogonal:
        """In another precision the base itself becomes orthonormal, so that it is saved like this."""
        before = self.base if self._orthonormal is not None else None
        super()._apply(fn, recurse)
        if before is not None and self.base is not None and self.base.dtype is not before.dtype:
            self.base = _settled(self.base)
        return self

    @torch.no_grad()
    def right_inverse(self, w: Tensor) -> Tensor:
        if w.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {w.shape}."
            )
        wide = w.shape[-2] < w.shape[-1]
        tall = widened(w.mT if wide else w)
        if self.use_trivialization:
            self.base = _maps.base(tall).to(w.dtype).contiguous()
            x = torch.zeros_like(tall)
            x.diagonal(dim1=-2, dim2=-1).fill_(-1)
        elif self.orthogonal_map == "householder":
            x = _maps.packed(tall)
        else:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        return (x.mT if wide else x).to(w.dtype).contiguous()


@torch.no_grad()
def _settled(base: Tensor) -> Tensor:
    """A square base that has come to another precision, orthonormal in it unless that is half precision."""
    known = type(base) is Tensor and not base.is_meta and base.dtype not in HALF
    return nearest(base) if known else base


def _adopt(chain: Any, state: dict[str, Any], prefix: str, metadata: dict[str, Any], *_: object) -> None:
    """Before a state is loaded: a thin weight's base of torch, n x n, becomes a thin one, and a square one is
    orthonormal in the precision of this module.
    """
    law, x, base = chain[0], state.get(prefix + "original"), state.get(f"{prefix}0.base")
    if not isinstance(x, Tensor) or x.shape != law.shape or not isinstance(base, Tensor):
        return  # `load_state_dict` reports it
    k, n = sorted(x.shape[-2:])
    wide = x.shape[-1] > k
    with torch.no_grad():
        if n > k and law.use_trivialization and base.shape[-2:] == (n, n):
            whole = gathered(x)
            packed, tall = _maps.thinned(widened(gathered(base)), widened(whole.mT if wide else whole))
            state[f"{prefix}0.base"] = divided(packed.to(base.dtype), base)
            state[prefix + "original"] = divided((tall.mT if wide else tall).to(x.dtype).contiguous(), x)
        elif law._orthonormal is not None and law.base is not None:
            own = base if metadata.get("assign_to_params_buffers") else base.to(law.base.dtype)
            settled = _settled(own)
            if settled is not own:
                state[f"{prefix}0.base"] = settled


def _settle_entry(_: Any, state: dict[str, Any], prefix: str, *__: object) -> None:
    """The entry of X in a saved state, which torch's function reads as 1 or -1 too."""
    x = state.get(prefix + "original")
    if isinstance(x, Tensor):
        settle_part(x) if is_divided(x) else settle(x)
