"""Which calls these kernels take without being asked: those that would take longer if they were left to torch, which
adds some 20 us to torch's own time. docs/faster-gru.md has the measurements.
"""

from ._layers import Kind

#: Units up to which matrices are laid out in little time.
_NARROW = 128
#: Units from which torch's gradients of many sequences are faster in an LSTM.
_WIDE = 512
#: Sequences up to which an LSTM is faster than torch's, however long and wide they are.
_FEW = 8
#: The most padded steps per entry of packed sequences, which are padded for the kernels.
_ROOM = 16


def pays(kind: Kind, steps: int, batch: int, features: int, n: int, recorded: bool, packed: int) -> bool:
    """Whether a call with n units is taken without being asked; `recorded` says whether there are gradients, `packed`
    how many entries packed sequences have.
    """
    if packed:  # without gradients U x is computed at every step for all sequences, also for those that have ended
        return steps * batch <= _ROOM * packed and (steps >= 10 if recorded else features <= n)
    if kind.name == "lstm":
        return batch <= _FEW or (n < _WIDE if recorded else steps <= 10 or n <= 64)
    if recorded:
        return steps >= (5 if kind.name == "gru" else 10)
    return steps >= 10 or n <= _NARROW or batch > _FEW
