"""Sizes on both sides of every change of algorithm, read from the code: a new threshold is tested from its first day.

A threshold is an integer constant, `const NAME: usize = 16;`, `1 << 4` or `if cfg!(test) { 8 } else { 16 }` of Rust and
`_NAME = 16` of Python, or the number with which a size is compared, `n <= 8`, `n == 2`. Those of an object are in the
files whose stem, or a folder of whose path, is the object's name; what several objects share is in those of `SHARED`.
"""

import functools
import itertools
import re

from subprocesses import ROOT

SOURCES = ("rust/core/src", "rust/kernels/src", "python/isometry/_inverse", "python/isometry/linalg")
#: Folders and files, by their stems, with code of every object: products, triangular solves, inverses, stacks of rows.
SHARED = ("kernels", "lanes", "tile", "rows", "cpu", "batch", "last", "recovered", "upper", "eliminate", "wy")
#: Larger numbers are those of bytes, of elements or of iterations.
MOST = 130

PATTERNS = (
    r"\bconst [A-Z][A-Z0-9_]*: usize = (?:if cfg!\(test\) \{ \d+ \} else \{ )?(\d[\d_]*)(?: << (\d+))?(?: \})?;",
    r"^_?[A-Z][A-Z0-9_]* = (\d+)$",
    r"\b(?:[nmk]|rows|columns) (?:[<>]=?|==) (\d+)\b",
)


def numbers(text):
    """The thresholds in a source."""
    found = set()
    for pattern in PATTERNS:
        for groups in re.findall(pattern, text, re.MULTILINE):
            number, *shift = groups if isinstance(groups, tuple) else (groups,)
            found.add(int(number) << int(*[s for s in shift if s] or [0]))
    return found


@functools.cache
def thresholds():
    """The stems of every source, those of its folders too, and the thresholds in it."""
    found = []
    for path in itertools.chain.from_iterable((ROOT / folder).rglob("*.[rp][sy]") for folder in SOURCES):
        stems = {part.removesuffix(path.suffix).lstrip("_") for part in path.relative_to(ROOT).parts[2:]}
        if "tests" not in stems:
            found.append((stems, numbers(path.read_text())))
    return found


@functools.cache
def sizes(*stems, most=MOST):
    """Just below, at and just above every threshold of the files with one of these stems, and 1, 2, 3; sorted."""
    own = {t for named, found in thresholds() if named & set(stems) for t in found}
    return sorted({n for t in (2, *own) for n in (t - 1, t, t + 1) if 0 < n <= most})
