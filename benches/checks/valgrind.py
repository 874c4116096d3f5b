"""The Rust tests under valgrind, by `make valgrind`."""

from __future__ import annotations

import argparse
import re

from checks.check import Check, Figures, Outcome, run

PATHS = ("portable", "AVX2")  # in the order of the Makefile
HOURS = 4


def watch(options: argparse.Namespace, _: Figures) -> Outcome:
    """All tests, or those with a name of `--filter`."""
    filters = options.filter.replace(",", " ")
    ended = run(["make", "valgrind", f"TESTS={filters}"], 3600 * HOURS)
    counts = [int(count) for count in re.findall(r"^test result: .*? (\d+) passed", ended.out, re.MULTILINE)]
    errors = [line for line in ended.err.splitlines() if re.match(r"==\d+== \w", line)][:5]
    failed = re.findall(r"^test (\S+) \.\.\. FAILED", ended.out, re.MULTILINE)
    failures = [*failed, *errors] or ([ended.failure] if ended.failure else [])
    return Outcome({"passed": dict(zip(PATHS, counts, strict=False)), "filter": filters}, failures)


def row(found: Figures) -> str:
    counts = ", ".join(f"{count:,} {path}" for path, count in found["passed"].items())
    which = f"the tests named {' or '.join(found['filter'].split())}" if found["filter"] else "all tests"
    return f"{which}: {counts} passed"


CHECK = Check(
    "Valgrind",
    "`make valgrind`: Rust tests of the core under memcheck, on one thread, with the portable kernels and with those "
    "for AVX2; valgrind does not support AVX-512.",
    "A failure is a test that fails, memory read or written outside its allocation, or a branch on an uninitialised "
    "value.",
    watch,
    row,
    ("filter",),
)
