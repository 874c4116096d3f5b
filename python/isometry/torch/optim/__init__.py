"""Optimisers of matrices that stay orthogonal or unitary, used like those of ``torch.optim``."""

from ._cayley import CayleyRMSprop, CayleySGD

__all__ = ["CayleyRMSprop", "CayleySGD"]
