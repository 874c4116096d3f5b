"""IDX, the format of MNIST: a header with type and sizes, then the numbers, most significant byte first.

bytes 0, 1     0
byte 2         type: 8 uint8, 9 int8, 11 int16, 12 int32, 13 float32, 14 float64
byte 3         number of axes
4 per axis     its length
the rest       the numbers, the last axis fastest
"""

import gzip
import io
import math
import zlib
from typing import IO

import numpy as np

from isometry._arrays import Array
from isometry.readers._file import Path_, contents, wrong

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
GZIP = b"\x1f\x8b"
RATIO = 1032  # the largest expansion of a byte by deflate
AXES = 8
PIECE = 1 << 20


def read_idx(path: Path_) -> Array:
    """Read an IDX file, gzip or not.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    numpy.ndarray
        uint8, int8, int16, int32, float32 or float64, of the shape in the file's header.

    Raises
    ------
    ValueError
        If the file is empty, truncated, damaged, too long for its header, or not an IDX file.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from isometry.readers import read_idx
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9]))
    >>> read_idx(path)
    array([7, 0, 9], dtype=uint8)
    """
    data = contents(path)
    if not data.startswith(GZIP):
        return _parsed(path, io.BytesIO(data), len(data))
    try:
        with gzip.open(io.BytesIO(data)) as file:
            return _parsed(path, file, RATIO * len(data))
    except (EOFError, OSError, zlib.error) as error:
        wrong(path, f"is a damaged gzip file: {error}")


def _parsed(path: Path_, file: IO[bytes] | gzip.GzipFile, most: int) -> Array:
    """The array, if the file holds exactly that; it cannot hold more than `most` bytes."""
    magic = _exactly(path, file, 4, "header")
    if magic[:2] != b"\0\0" or magic[2] not in TYPES:
        wrong(path, f"is not an IDX file: it begins with the bytes {magic.hex(' ')}")
    if not 1 <= magic[3] <= AXES:
        wrong(path, f"has {magic[3]} axes, expected 1 to {AXES}")
    shape = tuple(int(n) for n in np.frombuffer(_exactly(path, file, 4 * magic[3], "header"), ">u4"))
    dtype = np.dtype(TYPES[magic[2]])
    size = math.prod(shape) * dtype.itemsize
    told = f"{' x '.join(map(str, shape))} numbers of type {dtype.name}"
    if not size:
        wrong(path, f"holds nothing: its header says {told}")
    if size > most:
        wrong(path, f"is too short for what its header says: {told}")
    body = _exactly(path, file, size, told)
    if file.read(1):
        wrong(path, f"is too long for what its header says: {told}")
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _exactly(path: Path_, file: IO[bytes] | gzip.GzipFile, size: int, what: str) -> bytes:
    """That many bytes, read in pieces: `read` may allocate all that is asked for before it finds the file shorter."""
    pieces, left = [], size
    while left and (piece := file.read(min(left, PIECE))):
        pieces.append(piece)
        left -= len(piece)
    if left:
        wrong(path, f"is truncated: {left} of {size} bytes of its {what if what == 'header' else 'data'} are missing")
    return b"".join(pieces)
