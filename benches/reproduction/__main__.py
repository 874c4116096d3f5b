"""python benches/reproduction run | report | diagnosis: see `run` and `diagnosis`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the folder of the package, in place of the package itself

from reproduction import diagnosis, run  # noqa: E402

if __name__ == "__main__":
    own = sys.argv[1:2] == ["diagnosis"]
    sys.exit(diagnosis.main(sys.argv[2:]) if own else run.main(sys.argv[1:]))
