"""The acceptance suite beside the checkout, or else the laws of tests/."""

from __future__ import annotations

import argparse
import os

from checks.check import ROOT, Check, Figures, Outcome, tests

SUITE = ROOT.parent / "shared/conformance"
#: Of the suite's tests; `.ci/run` reads it.
MARKS = "not within"
HOURS = 2


def run(options: argparse.Namespace, _: Figures) -> Outcome:
    suite = options.suite or SUITE
    given = suite.is_dir()
    words = [suite, "-m", MARKS] if given else ["tests/laws", "-m", "not alone and not long"]
    cores = len(os.sched_getaffinity(0))
    spread = ["-n", cores, "--dist", "worksteal"] if cores > 1 else []
    passed, failed = tests(*words, *spread, seconds=3600 * HOURS)
    return Outcome({"suite": "the acceptance suite" if given else "the laws of tests/laws", "passed": passed}, failed)


CHECK = Check(
    "Conformance",
    "`pytest ../shared/conformance`, the acceptance suite: values, gradients and tangents of every public operator, "
    "recurrence and layer against recorded ones, in every dtype, and the exception and message for every invalid "
    "argument. Without that folder the laws of `tests/laws` are run.",
    "A failure is a test that does not pass.",
    run,
    lambda found: f"{found['passed']:,} tests of {found['suite']} passed",
)
