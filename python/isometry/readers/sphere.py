"""NIST SPHERE, the format of TIMIT: a header of text, then samples.

    NIST_1A
       1024                        bytes of the header
    sample_rate -i 16000           a name, a type and a value on each line
    end_head

The reader uses sample_count (of each channel), sample_rate, channel_count (1 if absent), sample_n_bytes, which must be
2, sample_byte_format (01 least significant byte first, 10 most) and sample_coding, which must be pcm.
"""

import re

import numpy as np

from isometry._arrays import Array
from isometry.readers._file import Path_, contents, mono, rate, wrong

MAGIC = b"NIST_1A\n"
ORDERS = {"01": "<i2", "10": ">i2"}
COUNTED = ("sample_count", "sample_rate", "channel_count", "sample_n_bytes")


def read_sphere(path: Path_) -> tuple[Array, int]:
    """Read a NIST SPHERE file with uncompressed samples of 16 bits.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    samples : numpy.ndarray
        float64, shape (N,), N >= 1: the mean of the channels, full scale 1.
    rate : int
        Samples per second.

    Raises
    ------
    ValueError
        If the file is empty, truncated, damaged, compressed, or not a SPHERE file.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from isometry.readers import read_sphere
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "SA1.WAV"
    >>> fields = "sample_count -i 2", "sample_rate -i 16000", "sample_n_bytes -i 2", "sample_byte_format -s2 01"
    >>> header = "\\n".join(["NIST_1A", "   1024", *fields, "end_head", ""]).ljust(1024)
    >>> _ = path.write_bytes(header.encode() + bytes([0, 64, 0, 192]))
    >>> read_sphere(path)
    (array([ 0.5, -0.5]), 16000)
    """
    data = contents(path)
    if not data.startswith(MAGIC):
        wrong(path, "is not a NIST SPHERE file: it does not begin with NIST_1A")
    size = re.fullmatch(rb" *([1-9]\d{1,6})\n?", data[8:16])
    if size is None or len(data) < int(size[1]):
        wrong(
            path, f"is truncated or damaged: the size of its header is {data[8:16]!r}, the file has {len(data)} bytes"
        )
    fields = _fields(path, data[16 : int(size[1])])
    coding = fields.get("sample_coding", "pcm")
    if coding != "pcm":
        wrong(path, f"has sample_coding {coding!r}, only 'pcm' can be read")
    numbers = {"channel_count": 1} | {name: _count(path, name, fields[name]) for name in COUNTED if name in fields}
    order = fields.get("sample_byte_format", "")
    lacking = [name for name in COUNTED if name not in numbers]
    if lacking or order not in ORDERS:
        wrong(path, f"has a header without {lacking[0] if lacking else 'the sample_byte_format 01 or 10'}")
    if numbers["sample_n_bytes"] != 2:
        wrong(path, f"has samples of {numbers['sample_n_bytes']} bytes, expected 2")
    count = 2 * numbers["sample_count"] * numbers["channel_count"]
    body = data[int(size[1]) :][:count]
    if len(body) < count:
        wrong(path, f"is truncated: {len(body)} of {count} bytes of samples")
    return mono(path, np.frombuffer(body, ORDERS[order]) / 2.0**15, numbers["channel_count"]), rate(
        path, numbers["sample_rate"]
    )


def _fields(path: Path_, header: bytes) -> dict[str, str]:
    """Values by name."""
    text, end, _ = header.decode("latin-1").partition("end_head")
    if not end:
        wrong(path, "is damaged: its header has no end_head")
    lines = (line.split(None, 2) for line in text.splitlines())
    return {words[0]: words[2].strip() for words in lines if len(words) == 3}


def _count(path: Path_, name: str, text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,11}", text):
        wrong(path, f"has the {name} {text!r}, expected an integer of at least 1")
    return int(text)
