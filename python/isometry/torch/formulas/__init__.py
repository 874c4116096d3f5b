"""The textbook formulas in torch operations, one module per object, differentiable in every mode of torch.

They serve tensors that are not on the CPU, forward mode, second derivatives, `torch.func` and `torch.compile`;
everything else runs in the kernels, against which they are tested. Operators come without batch, with x of shape
(..., n), or with one batch axis, (nb, n, m), with x of shape (nb, k, n).
"""

from . import activation, dense, recurrence

__all__ = ["activation", "dense", "recurrence"]
