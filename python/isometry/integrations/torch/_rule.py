"""Which calls are faster by these kernels than by torch: docs/faster-gru.md has the measurements."""

from __future__ import annotations

from ._layers import Kind

#: Steps from which all calls are faster but those of an LSTM without gradients on more than a few sequences.
_LONG = 50
#: Steps from which packed sequences and narrow layers are.
_SHORT = 10


def pays(kind: Kind, steps: int, batch: int, n: int, recorded: bool, packed: bool) -> bool:
    """Whether a call with n units is taken without being asked; `recorded` says whether there are gradients."""
    if steps == 1:
        return not recorded
    if packed:
        return steps >= _SHORT and (recorded or n <= 64 or (steps >= _LONG and kind.cell != "recurrence"))
    if kind.name == "lstm":
        if not recorded:
            return batch <= 2 and (steps >= _LONG or n <= 256)
        return steps >= _LONG or (n >= 512 and batch <= 2)
    return steps >= _LONG or (steps >= _SHORT and (n <= 64 or (recorded and (kind.name == "gru" or batch <= 2))))
