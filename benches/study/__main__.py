"""python benches/study run | time | report: see `run`, `times` and `guide`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the folder of the package, in place of the package itself

from study import guide, run, times  # noqa: E402

COMMANDS = {"run": run.main, "time": times.main, "report": guide.main}

if __name__ == "__main__":
    name, *words = sys.argv[1:] or [""]
    if name not in COMMANDS:
        sys.exit("python benches/study run | time | report")
    sys.exit(COMMANDS[name](words))
