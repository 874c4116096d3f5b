"""TorchRL's own tests of its recurrent modules, without and with `isometry.integrations.torchrl.register()`.

    python benches/torchrl_tests.py PATH        a checkout of pytorch/rl or its git directory: ten minutes a run
    python benches/torchrl_tests.py PATH --only "TestGRUModule and not parallel"

Prints the outcomes of both runs, every test whose outcomes differ, and how many calls of LSTMModule and GRUModule this
package computed. The exit status is 1 if a test passes without the registration only. Needs `isometry[rl]`.
"""

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import child

TESTS = ("test/conftest.py", "test/modules")
FILE = "test/modules/test_rnn.py"


class Recorder:
    """The plugin of pytest in a run: registers if it is asked to, and notes outcomes and who computed the calls."""

    def __init__(self, registered: bool) -> None:
        self.outcomes: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.calls: Counter[str] = Counter()
        self.serving: set[str] = set()
        self.current = ""
        if registered:
            from isometry.integrations import torchrl

            integration: Any = torchrl
            served = integration._served

            def counted(*given: Any) -> Any:
                found = served(*given)
                self.calls["TorchRL" if found is None else "isometry"] += 1
                if found is not None:
                    self.serving.add(self.current)
                return found

            integration._served = counted
            torchrl.register()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.current = nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome
            if report.failed:
                self.messages[report.nodeid] = str(report.longrepr).strip().splitlines()[-1]

    def found(self) -> dict[str, Any]:
        return {
            "outcomes": self.outcomes,
            "messages": self.messages,
            "calls": self.calls,
            "serving": sorted(name for name in self.serving if self.outcomes.get(name) == "passed"),
        }


def record(folder: Path, only: str, registered: bool, out: Path) -> None:
    """Run the tests in this process, with the environments of ParallelEnv as forks where there is no GPU."""
    import pytest

    recorder = Recorder(registered)
    words = [str(folder / FILE), "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--mp_fork_if_no_cuda"]
    pytest.main([*words, "--rootdir", str(folder), "-k", only], plugins=[recorder])
    out.write_text(json.dumps(recorder.found()))


def runs(path: Path, only: str) -> Iterator[dict[str, Any]]:
    """What a run without and one with the registration have found, each in a process of its own."""
    with tempfile.TemporaryDirectory() as made:
        folder = path
        if not (path / FILE).is_file():
            folder = Path(made)
            words = ["git", "--git-dir", str(path), "archive", "HEAD", *TESTS]
            packed = subprocess.run(words, capture_output=True, check=True)
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
                archive.extractall(folder, filter="data")
        for registered in (False, True):
            out = Path(made) / f"{registered}.json"
            words = [str(folder), "--only", only, "--record", str(out), *["--registered"] * registered]
            child.run("torchrl_tests", *words, cwd=made, check=True, stdout=sys.stderr)
            yield json.loads(out.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", default="", help="pytest's -k")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--registered", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.record:
        record(options.path, options.only, options.registered, options.record)
        return 0
    plain, ours = runs(options.path.resolve(), options.only)
    for name, run in (("without", plain), ("with", ours)):
        counts = Counter(run["outcomes"].values())
        print(f"{name} the registration:", ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    print("calls computed by", ", by ".join(f"{who} {n}" for who, n in sorted(ours["calls"].items())), end="; ")
    print(f"{len(ours['serving'])} of the tests that passed call this package")
    lost = 0
    for name in sorted(plain["outcomes"] | ours["outcomes"]):
        before, after = (run["outcomes"].get(name, "not run") for run in (plain, ours))
        if before != after or after == "failed":
            print(f"{name}: {before}, {after}: {ours['messages'].get(name, '')}")
            lost += before == "passed"
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
