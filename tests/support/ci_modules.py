"""The modules of .ci, which builds and checks the wheels."""

import sys

from subprocesses import ROOT

sys.path.insert(0, str(ROOT / ".ci"))
try:
    import contents
    import licences
finally:
    sys.path.remove(str(ROOT / ".ci"))

__all__ = ["contents", "licences"]
