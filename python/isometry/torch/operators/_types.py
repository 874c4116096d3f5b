"""The type of W."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..._objects._declaration import Declaration
from .._dispatch.function import COMPLEX_OF


def type_of(declaration: Declaration, arguments: Sequence[Tensor | None]) -> torch.dtype:
    """The type of W, from arguments that have been converted to it: that of the first array of the matrix's type; where
    the object has none, that of its first array, complex if angles are given."""
    lead = arguments[declaration.lead]
    assert lead is not None
    if declaration.turns and any([arguments[i] is not None for i in declaration.turns]):  # noqa: C419  torch.compile
        return COMPLEX_OF[lead.dtype]
    return lead.dtype
