"""python benches/faults run [--all] | report: planted faults, and which of them the tests notice."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the folder of the package, in place of the package itself

from faults import run  # noqa: E402

COMMANDS = {"run": run.main, "report": run.report}

if __name__ == "__main__":
    name, *words = sys.argv[1:] or [""]
    if name not in COMMANDS:
        sys.exit("python benches/faults run [--all] | report")
    sys.exit(COMMANDS[name](words))
