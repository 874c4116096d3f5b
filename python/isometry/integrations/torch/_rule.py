"""Which calls these kernels take without being asked: those that would take longer if they were left to torch, which
adds some 20 us to torch's own time. docs/faster-gru.md has the measurements.
"""

from ._layers import Kind

#: Units up to which matrices are laid out in little time.
_NARROW = 128
#: Sequences up to which an LSTM without gradients is faster than torch's, however long they are.
_FEW = 8


def pays(kind: Kind, steps: int, batch: int, n: int, recorded: bool, packed: bool) -> bool:
    """Whether a call with n units is taken without being asked; `recorded` says whether there are gradients."""
    if packed:
        return not recorded or steps >= 10
    if kind.name == "lstm":
        return recorded or batch <= _FEW or steps <= 10 or n <= 64
    if recorded:
        return steps >= (5 if kind.name == "gru" else 10)
    return steps >= 10 or n <= _NARROW or batch > _FEW
