"""`torch.nn.init.orthogonal_` in every floating type."""

import torch
from torch import Tensor

from .._rules import check
from ._dispatch.function import HALF, dtype_name
from .parametrizations._maps import packed, reflected
from .parametrizations._signs import signs

__all__ = ["orthogonal_"]


def orthogonal_(tensor: Tensor, gain: float = 1, generator: torch.Generator | None = None) -> Tensor:
    """Fill a tensor with a random orthogonal or unitary matrix, in place.

    The same call as `torch.nn.init.orthogonal_`, also for complex, float16 and bfloat16 tensors; the last two are
    computed in float32 and rounded once.

    Parameters
    ----------
    tensor : Tensor, shape (n, ...)
        At least two axes; those behind the first count as one. Its columns become orthonormal, its rows if it is wider
        than high: uniformly distributed, the Q of a normal matrix with a positive diagonal of R. Of a weight that holds
        several matrices, as the gates of `GRU`, give each: ``for w in layer.weight_hh_l0: orthogonal_(w)``.
    gain : float
        Multiplies the matrix.
    generator : torch.Generator, optional
        The random generator, by default torch's own.

    Returns
    -------
    Tensor
        The tensor itself.

    Raises
    ------
    ValueError
        A tensor of fewer than two axes.
    TypeError
        No tensor, a sparse one, or one of another dtype.

    See Also
    --------
    isometry.torch.parametrizations.orthogonal : keeps a weight orthogonal while it is trained.
    :doc:`orthogonal-weights` : weights of any module.

    Examples
    --------
    >>> import torch, isometry.torch as it
    >>> w = it.init.orthogonal_(torch.empty(6, 3, dtype=torch.bfloat16), generator=torch.Generator().manual_seed(0))
    >>> bool((w.T.float() @ w.float() - torch.eye(3)).abs().max() < 0.02)
    True
    """
    if not isinstance(tensor, Tensor):
        check.kind("tensor", "a torch.Tensor", tensor)
    if tensor.layout is not torch.strided:
        check.strided("tensor", tensor.layout)
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.dtype not in HALF:
        check.floating("tensor", dtype_name(tensor.dtype))
    if not tensor.numel():
        return tensor
    rows, columns = len(tensor), tensor.numel() // len(tensor)
    dtype = torch.float32 if tensor.dtype in HALF else tensor.dtype
    with torch.no_grad():
        drawn = torch.randn(rows, columns, dtype=dtype, device=tensor.device, generator=generator)
        x = packed(drawn.mT if rows < columns else drawn)
        q = reflected(x, signs(x))
        tensor.copy_(((q.mT if rows < columns else q) * gain).reshape(tensor.shape))
    return tensor
