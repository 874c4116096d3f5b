"""python benches/study run | report: see `run` and `guide`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the folder of the package, in place of the package itself

from study import guide, run  # noqa: E402

if __name__ == "__main__":
    own = sys.argv[1:2] == ["report"]
    sys.exit(guide.main(sys.argv[2:]) if own else run.main(sys.argv[2:]))
