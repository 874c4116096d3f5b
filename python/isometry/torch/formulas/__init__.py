"""The textbook formulas in torch operations, one module per object, differentiable in every mode of torch.

They serve tensors that are not on the CPU, forward mode, second derivatives, `torch.func` and `torch.compile`;
everything else runs in the kernels, which are tested against them. Operators have no batch axis, with x of shape (...,
n), or one, as in (nb, n, m), with x of shape (nb, k, n).
"""

from . import activation, dense, recurrence

__all__ = ["activation", "dense", "recurrence"]
