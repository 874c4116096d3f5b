"""Which calls are faster by these kernels than by torch: the rule and its measurements are in docs/faster-gru.md."""

from __future__ import annotations

from collections.abc import Sequence

from ._layers import Kind


def pays(kind: Kind, shape: Sequence[int], n: int, recorded: bool, packed: bool) -> bool:
    """Whether a call on (T, B, d) with n units is taken without being asked."""
    steps, batch, _ = shape
    if packed:
        return steps >= (10 if recorded else 50)
    if kind.name == "lstm":
        return recorded and (steps >= 50 or n >= 512)
    return steps >= (10 if recorded else 50) or (recorded and steps * batch >= 320 and n < 256)
