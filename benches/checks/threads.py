"""Many threads and processes at once: `load.py`, and the tests of forks and callers."""

from __future__ import annotations

import argparse

from checks.check import Check, Figures, Outcome, run, script, tests

PHASES = {"threads": "eight threads", "loaders": "threads and forked loaders", "pools": "nested pools"}
TESTS = ("tests/process/test_fork.py", "tests/process/test_rayon_team.py")


def load(options: argparse.Namespace, _: Figures) -> Outcome:
    """Every phase for `--seconds`, then the tests."""
    outcome = Outcome({"seconds": options.seconds, "calls": {}})
    for phase, title in PHASES.items():
        ended = run(script("load", phase, options.seconds), options.seconds + 300)
        found = ended.lines[-1] if ended.lines else {"calls": 0, "wrong": {}}
        outcome.figures["calls"][title] = found["calls"]
        outcome.failures += [f"{title}: {name}: {count} times" for name, count in found["wrong"].items()]
        outcome.failures += [f"{title}: {ended.failure}"] if ended.failure else []
    outcome.figures["tests"], failed = tests(*TESTS, seconds=1800)
    outcome.failures += failed
    return outcome


def row(found: Figures) -> str:
    counts = "; ".join(f"{title}: {count:,} calls" for title, count in found["calls"].items())
    return f"{counts}, in {found['seconds']:g} s each; {found['tests']} tests passed"


CHECK = Check(
    "Threads under load",
    "Eight Python threads call operators, recurrences, the delta rule and shared layers, with gradients; then data "
    "loaders fork workers that compute meanwhile; then forked processes run thread pools within thread pools.",
    "A failure is a result that differs in any bit from that of the same call alone, an exception, a crash or a hang.",
    load,
    row,
    ("seconds",),
)
