"""Shared by all readers: the contents of a regular file, the message, samples as numbers."""

import os
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np

from isometry._arrays import Array
from isometry._rules import check

Path_ = str | PathLike[str]
LARGEST = 1e6  # sample of a floating-point file, whose full scale is 1


def regular(path: Path_) -> Path:
    """The path, unless it is a device or a pipe, which might never end."""
    try:
        file = Path(path)
    except TypeError:
        check.kind("path", "a path", path)
    if file.exists() and not file.is_file():
        wrong(path, "is not a regular file")
    return file


def contents(path: Path_) -> bytes:
    """The bytes of a regular file that is not empty."""
    data = regular(path).read_bytes()
    if not data:
        wrong(path, "is empty")
    return data


def decoded(path: Path_, data: bytes) -> str:
    """The bytes of the file as text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wrong(path, f"is not text in UTF-8: {error.reason} at byte {error.start}")
    if "\0" in text:
        wrong(path, f"is not text: it has a zero byte at character {text.index(chr(0))}")
    return text


def wrong(path: Path_, what: str) -> NoReturn:
    """The file is not what it should be."""
    raise ValueError(f"path {os.fspath(path)} {what}")


def mono(path: Path_, samples: Array, channels: int) -> Array:
    """The mean of the channels, float64 (N,), of interleaved samples."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = samples.astype(np.float64)
    if not (np.abs(wide) <= LARGEST).all():  # NaN compares false
        wrong(path, f"has a sample that is not a number of at most {LARGEST:g} in units of full scale")
    return wide.reshape(-1, channels).mean(axis=1)


def rate(path: Path_, value: int) -> int:
    """Samples per second, within the range of audio."""
    if not 1000 <= value <= 1_000_000:
        wrong(path, f"has {value} samples per second, expected 1,000 to 1,000,000")
    return value
