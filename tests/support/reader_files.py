"""IDX, WAV and SPHERE files, written byte by byte from the definitions of the formats."""

import struct

TYPES = {8: "u1", 9: "i1", 11: "i2", 12: "i4", 13: "f4", 14: "f8"}


def idx(array, code=8):
    sizes = b"".join(struct.pack(">I", n) for n in array.shape)
    return bytes([0, 0, code, array.ndim]) + sizes + array.astype(f">{TYPES[code]}").tobytes()


def wav(samples, rate=8000, channels=1, coding=1, bits=16, extensible=False, before=b""):
    """A WAV file; `before` are chunks between fmt and data."""
    frame = channels * bits // 8
    fmt = struct.pack("<HHIIHH", 0xFFFE if extensible else coding, channels, rate, rate * frame, frame, bits)
    if extensible:
        fmt += struct.pack("<HHI", 22, bits, 0) + struct.pack("<H", coding) + bytes(14)
    body = b"fmt " + struct.pack("<I", len(fmt)) + fmt + before + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def sphere(samples, order="01", size=1024, **changes):
    fields = {
        "database_id": "-s5 TIMIT",
        "channel_count": "-i 1",
        "sample_count": f"-i {len(samples) // 2}",
        "sample_rate": "-i 16000",
        "sample_n_bytes": "-i 2",
        "sample_byte_format": f"-s2 {order}",
    }
    lines = [f"{name} {value}" for name, value in (fields | changes).items() if value]
    return "\n".join(["NIST_1A", f"{size:7d}", *lines, "end_head", ""]).ljust(size).encode() + samples
