"""The checks of benches/reliability.py by their names, in the order of the page."""

import argparse
import os
import re

from checks import fuzz
from checks.check import ROOT, Check, Figures, Outcome, run, soak, tests

SUITE = ROOT.parent / "shared/conformance"
PATHS = ("portable", "AVX2")  # of `make valgrind`, in its order


def conformance(options: argparse.Namespace, _: Figures) -> Outcome:
    """The acceptance suite beside the checkout, or else the laws of tests/."""
    suite = options.suite or SUITE
    given = suite.is_dir()
    words = [suite] if given else ["tests/laws", "-m", "not alone and not long"]
    cores = len(os.sched_getaffinity(0))
    spread = ["-n", cores, "--dist", "worksteal"] if cores > 1 else []
    passed, failed = tests(*words, *spread, hours=2)
    return Outcome({"suite": "the acceptance suite" if given else "the laws of tests/laws", "passed": passed}, failed)


def valgrind(options: argparse.Namespace, _: Figures) -> Outcome:
    """All tests, or those with a name of `--filter`."""
    filters = options.filter.replace(",", " ")
    ended = run(["make", "valgrind", f"TESTS={filters}"], 4 * 3600)
    counts = [int(count) for count in re.findall(r"^test result: .*? (\d+) passed", ended.out, re.MULTILINE)]
    errors = [line for line in ended.err.splitlines() if re.match(r"==\d+== \w", line)][:5]
    failed = re.findall(r"^test (\S+) \.\.\. FAILED", ended.out, re.MULTILINE)
    failures = [*failed, *errors] or ([ended.failure] if ended.failure else [])
    return Outcome({"passed": dict(zip(PATHS, counts, strict=False)), "filter": filters}, failures)


def kills(found: Figures) -> str:
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(found["killed"].items()))
    total = sum(found["killed"].values())
    ended = f"{found['equal']} trainings of {found['updates']} updates ended like the uninterrupted one"
    return f"killed {total} times ({stages}); {ended}"


def memory(found: Figures) -> str:
    return (
        f"{found['minutes']:g} minutes, {found['updates']:,} updates; {found['start']:g} MiB at the first update, "
        f"{found['tenth']:g} after a tenth of the time, {found['end']:g} at the end, {found['most']:g} at most; "
        f"slope {found['slope']:+g} MiB an hour"
    )


def calls(found: Figures) -> str:
    counts = "; ".join(f"{title}: {count:,} calls" for title, count in found["calls"].items())
    return f"{counts}, in {found['seconds']:g} s each; {found['tests']} tests passed"


def files(found: Figures) -> str:
    count = dict(found["files"])
    loaded, resumed = count.pop("load_run"), count.pop("resume")
    return f"{sum(count.values()):,} files of {len(count)} formats, {loaded:,} runs loaded, {resumed:,} resumed"


def rust(found: Figures) -> str:
    counts = ", ".join(f"{count:,} {path}" for path, count in found["passed"].items())
    which = f"the tests named {' or '.join(found['filter'].split())}" if found["filter"] else "all tests"
    return f"{which}: {counts} passed"


CHECKS = {
    "conformance": Check(
        "Conformance", conformance, lambda found: f"{found['passed']:,} tests of {found['suite']} passed"
    ),
    "fuzz": Check("Fuzz", fuzz.examine, fuzz.row),
    "kill": Check("Killed trainings", soak("tests/soak/test_killed.py"), kills, ("moments", "seed")),
    "memory": Check("Memory", soak("tests/soak/test_memory.py"), memory, ("minutes",)),
    "threads": Check(
        "Threads under load",
        soak("tests/soak/test_threads.py", "tests/process/test_fork.py", "tests/process/test_rayon_team.py"),
        calls,
        ("seconds",),
    ),
    "mutation": Check("Mutated files", soak("tests/soak/test_mutation.py"), files, ("files", "seed")),
    "valgrind": Check("Valgrind", valgrind, rust, ("filter",)),
}
