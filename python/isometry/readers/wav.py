"""RIFF WAVE: chunks of a name, a size and contents, least significant byte first.

    RIFF <size> WAVE
    fmt  <size> coding, channels, samples per second, bytes per second, bytes per frame, bits per sample, ...
    data <size> frames of one sample per channel

Coding: 1 integers of 8 (unsigned), 16, 24 or 32 bits, 3 floating point of 32 or 64 bits, or 0xFFFE, with one of these
two at byte 24 of the chunk.
"""

import struct

import numpy as np

from isometry._arrays import Array
from isometry.readers._file import Path_, contents, mono, rate, wrong

INTEGERS, FLOATS, EXTENSIBLE = 1, 3, 0xFFFE
KINDS = {(INTEGERS, 8), (INTEGERS, 16), (INTEGERS, 24), (INTEGERS, 32), (FLOATS, 32), (FLOATS, 64)}


def read_wav(path: Path_) -> tuple[Array, int]:
    """Read a WAV file.

    Parameters
    ----------
    path
        The file: integers of 8, 16, 24 or 32 bits, or floating-point numbers.

    Returns
    -------
    samples : numpy.ndarray
        float64, shape (N,), N >= 1: the mean of the channels, full scale 1.
    rate : int
        Samples per second.

    Raises
    ------
    ValueError
        If the file is empty, truncated, damaged, in another coding, or not a WAV file.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile, wave
    >>> from isometry.readers import read_wav
    >>> path = tempfile.mkdtemp() + "/a.wav"
    >>> with wave.open(path, "wb") as file:
    ...     file.setparams((1, 2, 8000, 0, "NONE", ""))
    ...     file.writeframes(bytes([0, 64, 0, 192]))
    >>> read_wav(path)
    (array([ 0.5, -0.5]), 8000)
    """
    data = contents(path)
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        wrong(path, "is not a WAV file: it does not begin with RIFF ... WAVE")
    chunks = _chunks(path, data)
    if b"fmt " not in chunks or b"data" not in chunks:
        wrong(path, f"lacks the chunk {'fmt' if b'fmt ' not in chunks else 'data'}")
    header, body = chunks[b"fmt "], chunks[b"data"]
    if len(header) < 16:
        wrong(path, f"is damaged: its fmt chunk has {len(header)} bytes, expected 16 or more")
    coding, channels, frequency, _, frame, bits = struct.unpack("<HHIIHH", header[:16])
    if coding == EXTENSIBLE and len(header) >= 26:
        (coding,) = struct.unpack("<H", header[24:26])
    if (coding, bits) not in KINDS:
        wrong(path, f"has samples of coding {coding} with {bits} bits; integers (1) and floating point (3) can be read")
    if not channels or frame != channels * bits // 8:
        wrong(path, f"is damaged: {channels} channels of {bits} bits in frames of {frame} bytes")
    if not body:
        wrong(path, "has no samples")
    if len(body) % frame:
        wrong(path, f"is truncated: {len(body)} bytes of data in frames of {frame} bytes")
    return mono(path, _numbers(body, coding, bits), channels), rate(path, frequency)


def _chunks(path: Path_, data: bytes) -> dict[bytes, bytes]:
    """The first chunk of each name, up to the data."""
    found: dict[bytes, bytes] = {}
    k = 12
    while k + 8 <= len(data) and b"data" not in found:
        name, (size,) = data[k : k + 4], struct.unpack("<I", data[k + 4 : k + 8])
        if k + 8 + size > len(data):
            told = ascii(name.decode("latin-1"))
            wrong(path, f"is truncated: its chunk {told} has {len(data) - k - 8} of {size} bytes")
        found.setdefault(name, data[k + 8 : k + 8 + size])
        k += 8 + size + size % 2
    return found


def _numbers(body: bytes, coding: int, bits: int) -> Array:
    """Samples in units of full scale."""
    if coding == FLOATS:
        return np.frombuffer(body, f"<f{bits // 8}")
    if bits == 8:
        return (np.frombuffer(body, np.uint8) - 128.0) / 128
    if bits == 24:  # as the upper three bytes of 32 bits
        wide = np.zeros((len(body) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(body, np.uint8).reshape(-1, 3)
        body, bits = wide.tobytes(), 32
    return np.frombuffer(body, f"<i{bits // 8}") / 2.0 ** (bits - 1)
