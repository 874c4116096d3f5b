"""Readers of files: every form they know, and files that are damaged, truncated or something else.

Mutated files give an array or an error that names the file, and never cost more memory than the file justifies.
"""

import gzip
import os
import struct
import tracemalloc
import warnings
import wave

import numpy as np
import pytest

from isometry.readers import read_audio, read_idx, read_sphere, read_text, read_wav
from reader_files import TYPES, idx, sphere, wav
from tolerance import TIGHT, close


@pytest.fixture
def put(tmp_path):
    def write(data, name="file"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("shape", [(3,), (4, 2, 3)], ids=str)
def test_idx(put, seed, code, shape):
    """Every type, plain and compressed, in native byte order."""
    array = (100 * seed.standard_normal(shape)).astype(TYPES[code])
    for data in (idx(array, code), gzip.compress(idx(array, code))):
        found = read_idx(put(data))
        assert found.dtype == np.dtype(TYPES[code]) and found.dtype.isnative and np.array_equal(found, array)
        assert found.flags.writeable


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize("kind", [(1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)], ids=str)
def test_wav(put, seed, kind, extensible, channels):
    """Every coding: the mean of the channels, full scale 1; chunks of odd length before the data are skipped."""
    coding, bits = kind
    if coding == 3:
        numbers = seed.uniform(-1, 1, (7, channels)).astype(f"<f{bits // 8}")
        samples, value = numbers.tobytes(), numbers.astype(float)
    else:
        numbers = seed.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (7, channels))
        value = numbers / 2.0 ** (bits - 1)
        raw = (numbers + (128 if bits == 8 else 0)).astype("<i8").tobytes()
        samples = b"".join(raw[k : k + bits // 8] for k in range(0, len(raw), 8))
    data = wav(samples, 44100, channels, coding, bits, extensible, before=b"LIST" + struct.pack("<I", 3) + b"abc\0")
    found, rate = read_wav(put(data))
    assert rate == 44100 and found.dtype == np.float64
    close(found, value.mean(1), TIGHT)


def test_wav_of_another_program(tmp_path, seed):
    """Python's own writer."""
    numbers = seed.integers(-(2**15), 2**15, 50).astype("<i2")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(numbers.tobytes())
    found, rate = read_audio(tmp_path / "a.wav")
    assert rate == 16000 and np.array_equal(found, numbers / 2**15)


def test_no_warning_beside_an_error(put):
    """A signalling NaN raises the processor's flag where it is widened."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="not a number"):
            read_wav(put(wav(bytes.fromhex("0100a07f"), coding=3, bits=32)))


@pytest.mark.parametrize("order", ["01", "10"])
def test_sphere(put, seed, order):
    numbers = seed.integers(-(2**15), 2**15, (50, 2))
    samples = numbers.astype("<i2" if order == "01" else ">i2").tobytes()
    one = read_audio(put(sphere(samples, order, channel_count="", sample_coding="-s3 pcm")))
    two = read_sphere(put(sphere(samples, order, size=2048, channel_count="-i 2", sample_count="-i 50")))
    assert one[1] == two[1] == 16000
    assert np.array_equal(one[0], numbers.ravel() / 2**15)
    close(two[0], numbers.mean(1) / 2**15, TIGHT)


def test_text(put):
    assert read_text(put("\ufeffé\r\na\rb\n".encode())) == "é\na\nb\n"


IMAGES, SAMPLES = idx(np.arange(24).reshape(2, 3, 4)), bytes(range(40))
HUGE = bytes([0, 0, 14, 4]) + b"\xff" * 16
# reader, contents, what the message says beside the file
WRONG = {
    "idx empty": (read_idx, b"", "is empty"),
    "idx of another kind": (read_idx, b"GIF89a", "not an IDX file: it begins with the bytes 47 49 46 38"),
    "idx of an unknown type": (read_idx, b"\0\0\x0a\x01", "not an IDX file"),
    "idx without axes": (read_idx, b"\0\0\x08\0", "0 axes"),
    "idx with too many axes": (read_idx, b"\0\0\x08\xff" + bytes(1020), "255 axes"),
    "idx cut in the header": (read_idx, IMAGES[:9], "truncated: 7 of 12 bytes of its header"),
    "idx cut in the data": (read_idx, IMAGES[:-5], "truncated: 5 of 24 bytes of its data"),
    "idx with more": (read_idx, IMAGES + b"x", "too long for what its header says: 2 x 3 x 4 numbers of type uint8"),
    "idx of nothing": (read_idx, idx(np.zeros((0, 3))), "holds nothing"),
    "idx huge": (read_idx, HUGE, "too short"),
    "gzip huge": (read_idx, gzip.compress(HUGE), "too short"),
    "gzip cut": (read_idx, gzip.compress(IMAGES)[:-9], "damaged gzip file"),
    "gzip with a wrong sum": (read_idx, gzip.compress(IMAGES)[:-8] + bytes(8), "damaged gzip file"),
    "gzip of short data": (read_idx, gzip.compress(IMAGES[:-5]), "truncated: 5 of 24 bytes of its data"),
    "gzip of nothing": (read_idx, gzip.compress(b""), "truncated: 4 of 4 bytes of its header"),
    "wav empty": (read_wav, b"", "is empty"),
    "wav of another kind": (read_wav, b"RIFX" + bytes(20), "not a WAV file"),
    "wav without data": (read_wav, wav(SAMPLES)[:36], "lacks the chunk data"),
    "wav without fmt": (read_wav, b"RIFF\0\0\0\0WAVEdata" + bytes(4), "lacks the chunk fmt"),
    "wav cut": (read_wav, wav(SAMPLES)[:-3], "truncated: its chunk 'data' has 37 of 40 bytes"),
    "wav huge": (read_wav, wav(SAMPLES)[:40] + b"\xff\xff\xff\xff", "truncated"),
    "wav of no frames": (read_wav, wav(b""), "has no samples"),
    "wav of half a frame": (read_wav, wav(SAMPLES[:3]), "3 bytes of data in frames of 2 bytes"),
    "wav compressed": (read_wav, wav(SAMPLES, coding=2, bits=4), "coding 2 with 4 bits"),
    "wav without channels": (read_wav, wav(SAMPLES, channels=0), "0 channels"),
    "wav of no rate": (read_wav, wav(SAMPLES, rate=0), "0 samples per second"),
    "wav with NaN": (read_wav, wav(np.float32([0, np.nan]).tobytes(), coding=3, bits=32), "not a number"),
    "wav with infinity": (read_wav, wav(np.float64([0, np.inf]).tobytes(), coding=3, bits=64), "not a number"),
    "sphere empty": (read_sphere, b"", "is empty"),
    "sphere of another kind": (read_sphere, wav(SAMPLES), "not a NIST SPHERE file"),
    "sphere cut in the header": (read_sphere, sphere(SAMPLES)[:500], "the file has 500 bytes"),
    "sphere with a huge header": (read_sphere, b"NIST_1A\n9999999\n" + bytes(99), "size of its header"),
    "sphere without end": (read_sphere, sphere(SAMPLES).replace(b"end_head", b"end_hand"), "no end_head"),
    "sphere cut": (read_sphere, sphere(SAMPLES)[:-1], "39 of 40 bytes of samples"),
    "sphere huge": (read_sphere, sphere(SAMPLES, sample_count="-i 999999999999"), "bytes of samples"),
    "sphere without a count": (read_sphere, sphere(SAMPLES, sample_count=""), "without sample_count"),
    "sphere without an order": (read_sphere, sphere(SAMPLES, order="11"), "sample_byte_format"),
    "sphere of no samples": (read_sphere, sphere(b""), "the sample_count '0'"),
    "sphere of bytes": (read_sphere, sphere(SAMPLES, sample_n_bytes="-i 1"), "samples of 1 bytes"),
    "sphere compressed": (read_sphere, sphere(SAMPLES, sample_coding="-s4 ulaw"), "sample_coding 'ulaw'"),
    "audio of neither format": (read_audio, b"ID3" + bytes(100), "not a WAV file"),
    "text empty": (read_text, b"", "is empty"),
    "text that is none": (read_text, b"ab\xffcd", "not text in UTF-8: invalid start byte at byte 2"),
    "text with zeros": (read_text, b"ab\0", "zero byte at character 2"),
    "text of a mark": (read_text, "\ufeff".encode(), "byte order mark"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(put, name):
    reader, data, said = WRONG[name]
    path = put(data)
    with pytest.raises(ValueError) as info:
        reader(path)
    assert str(info.value).startswith(f"path {path} ") and said in str(info.value)


READERS = [read_idx, read_wav, read_sphere, read_audio, read_text]


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file(tmp_path, reader):
    """A folder, a device and a pipe, which might never end, a file that is not there, and no path."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ValueError, match="is not a regular file"):
            reader(path)
    with pytest.raises(FileNotFoundError):
        reader(tmp_path / "nothing")
    with pytest.raises(TypeError, match="path"):
        reader(3.5)


# ---------------------------------------------------------------- mutation

ALLOWANCE, TIMES = 1 << 20, 40  # bytes of memory: whatever the file, and per byte of it
GOOD = {
    "idx": (read_idx, [IMAGES, idx(np.arange(9.0), 14)]),
    "gzip": (read_idx, [gzip.compress(IMAGES), gzip.compress(bytes([0, 0, 8, 1, 0, 0, 16, 0]) + bytes(4096))]),
    "wav": (read_wav, [wav(SAMPLES), wav(SAMPLES, bits=24, channels=2, extensible=True, before=b"LIST\2\0\0\0ab")]),
    "sphere": (read_sphere, [sphere(SAMPLES, size=256), sphere(SAMPLES, channel_count="-i 2", sample_count="-i 10")]),
    "audio": (read_audio, [sphere(SAMPLES, size=256), wav(np.float32([0, 1]).tobytes(), coding=3, bits=32)]),
    "text": (read_text, ["Grüße, 世界\n".encode() * 3, b"\xef\xbb\xbfplain\r\n"]),
}
DIGITS = b"0123456789"


def mutated(rng, data):
    """One to four changes: cut, bytes changed, a run of ones or zeros, larger decimal numbers, deleted, repeated."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        size = len(data)
        k = int(rng.integers(0, min(size, 64) if rng.random() < 0.5 else size)) if size else 0
        length = int(rng.integers(1, 9))
        change = rng.integers(0, 7)
        if change == 0:
            del data[k:]
        elif change == 1:
            data[k : k + 1] = rng.bytes(1)
        elif change == 2:
            data[k : k + length] = b"\xff" * length
        elif change == 3:
            data[k : k + length] = bytes(length)
        elif change == 4:
            places = [j for j in range(size) if data[j] in DIGITS]
            at = places[rng.integers(len(places))] if places else k
            data[at:at] = b"9" * length
        elif change == 5:
            del data[k : k + length]
        else:
            data[k:k] = data[k : k + length]
    return bytes(data)


def explore(name, count, path, rng):
    """Read `count` mutated files; every other outcome than a result or the documented error raises."""
    reader, good = GOOD[name]
    refused = 0
    tracemalloc.start()
    try:
        for k in range(count):
            data = mutated(rng, good[k % len(good)])
            path.write_bytes(data)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                found = reader(path)
                numbers = found[0] if isinstance(found, tuple) else found
                assert len(numbers) > 0 and (isinstance(numbers, str) or np.isfinite(numbers).all() or name == "idx")
            except ValueError as error:
                assert str(error).startswith(f"path {path} "), error
                refused += 1
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak <= ALLOWANCE + TIMES * len(data), f"{peak} bytes for {data!r}"
    finally:
        tracemalloc.stop()
    assert count / 20 < refused < count, "the changes are too small, or too large, to find anything"


@pytest.mark.parametrize("name", GOOD)
def test_mutated_files(tmp_path, seed, name):
    explore(name, 500, tmp_path / "file", seed)
