"""The keywords shared by all layers."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import torch

#: What a recurrence gives: all states, or the last of each sequence.
Output = Literal["states", "last"]


#: Keywords of a recurrence in whose sequences others begin: the marks, and the state before them; or none.
Marks = dict[str, Any]


class LayerKeywords(TypedDict, total=False):
    """Those of ``torch.nn.RNN``, trained initial states, and what is kept of the states and returned."""

    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    trainable_h0: bool
    checkpoint: Literal["none", "sqrt", "reversible"]
    last_only: bool
    device: torch.device | str | None
    dtype: torch.dtype | None
